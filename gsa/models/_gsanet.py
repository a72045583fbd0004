"""Group self-attention networks."""

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from gsa._checks import check_choice, check_kind, check_probability
from gsa.groups import Group
from gsa.models._network import Network
from gsa.models._published import PublishedBlock, PublishedGroupTerm, as_published, warn_of_group_term
from gsa.models._stages import StagePlan
from gsa.models._stem import StemOptions
from gsa.nn import (
    AttentionBlock,
    AttentionOptions,
    GroupSelfAttention,
    LiftingSelfAttention,
    PlainBlock,
    PointwiseLinear,
    SelfAttention,
    SpatialPool,
    nearest_sizes,
)
from gsa.nn import norm as make_norm

__all__ = ["Dropouts", "GSANet"]


@dataclass(frozen=True)
class Dropouts:
    """Probabilities of dropping an entry: of the image, after every block's attention, after every pool."""

    input_dropout: float = 0.0
    dropout: float = 0.0
    pool_dropout: float = 0.0

    def __post_init__(self) -> None:
        check_probability(**vars(self))


_PLAN, _ATTENTION, _STEM, _DROPOUTS = StagePlan(), AttentionOptions(head_dim=None), StemOptions(), Dropouts()
_BLOCKS = {"residual": AttentionBlock, "plain": PlainBlock, "published": PublishedBlock}
_GROUP_TERMS = {"corrected": GroupSelfAttention, "published": PublishedGroupTerm}


class GSANet(Network):
    """GSA-Net: lifting self-attention, stages of blocks with pooling between, an invariant head.

        images → lifting → max-pool → [blocks → max-pool] × stages → linear → pool over pixels and poses → logits

    The first pool is there where the stem has one. The logits do not change when the input is moved by
    an element of the group that is exact on the grid.

    Source: Romero & Cordonnier 2021. Where their public code differs, `published=True` follows it, and in the group
    term `pose_index="published"`; docs/published.md has the sizes and the reasons.

    Args:
        group: the point group H, or its name.
        in_channels, num_classes: of the data.
        plan: channels, blocks, crops, windows and pools.
        attention: of every attention layer.
        stem: how the lifting layer differs.
        form: of the blocks' attention, "regular" or "summed" (the paper's).
        block: "residual" (the paper's, `gsa.nn.AttentionBlock`), "published" (the same with the mlp of the public code)
            or "plain" (`gsa.nn.PlainBlock`).
        norm: "sample" (the paper's), "channel" or "batch".
        lifted_norm, block_norm: norm and swish after the lifting layer; after every block.
        dropouts: beside those of the attention layers.
        pixels, poses: how the head pools: "sum" (the paper's; the functions of "mean", but initial logits grow with
            the number of pixels), "mean" or "max" over pixels; "max" or "mean" over poses.
        on_inexact: what to do with images whose size makes a pool lose exactness: "raise", "warn", "allow" or "widen"
            its windows there, which stays exact (`gsa.nn.SpatialPool`). Networks without poses (Z2) always allow it.
        published: build it as the public code does; then form is "summed", block "published" and pixels "sum", the head
            has no bias, and pools are 2×2 at stride 2 and warn where they lose exactness.
        pose_index: group term of the summed form, "corrected" or, for the logits of the public code, "published", which
            is not equivariant and warns.

    Shapes:
        [B, C, H, W] → [B, num_classes]

    Raises:
        ValueError: an argument out of its range; an image size that loses exactness.
    """

    training_only = (
        "attention_dropout",
        "value_dropout",
        "input_dropout",
        "dropout",
        "pool_dropout",
        "head_starts",
    )

    def __init__(
        self,
        group: Group | str,
        in_channels: int = 1,
        num_classes: int = 10,
        *,
        plan: StagePlan = _PLAN,
        attention: AttentionOptions = _ATTENTION,
        stem: StemOptions = _STEM,
        form: str = "regular",
        block: str = "residual",
        norm: str = "sample",
        lifted_norm: bool = False,
        block_norm: bool = False,
        dropouts: Dropouts = _DROPOUTS,
        pixels: str = "mean",
        poses: str = "max",
        on_inexact: str = "raise",
        published: bool = False,
        pose_index: str = "corrected",
    ) -> None:
        if published:
            form, block, pixels = "summed", "published", "sum"
            on_inexact = "warn" if on_inexact == "raise" else on_inexact
        super().__init__(group, in_channels, num_classes, pixels, poses)
        check_kind(StagePlan, plan=plan)
        check_kind(AttentionOptions, attention=attention)
        check_kind(StemOptions, stem=stem)
        check_kind(Dropouts, dropouts=dropouts)
        check_choice(("raise", "warn", "allow", "widen"), on_inexact=on_inexact)
        check_choice(tuple(_BLOCKS), block=block)
        check_choice(tuple(_GROUP_TERMS), pose_index=pose_index)
        self.on_inexact = on_inexact if self.group.order > 1 else "allow"
        self.published, self.form = published, form
        self.input_dropout = nn.Dropout(dropouts.input_dropout)
        self.lifting = LiftingSelfAttention(
            self.group, in_channels, plan.channels, crop=stem.stem_crop, **vars(stem.of(attention))
        )
        self.stem_pool = SpatialPool(stem.stem_pool, on_inexact=self.on_inexact) if stem.stem_pool else nn.Identity()
        self.lifted = _normed(norm, plan.channels) if lifted_norm else nn.Identity()

        self.stages = nn.ModuleList()
        channels = plan.channels
        self.stage_channels = (channels,)
        for index, (blocks, pool) in enumerate(plan.stages()):
            stage, of_stage = nn.Sequential(), attention
            if plan.content_heads is not None:
                if attention.positional_heads + plan.content_heads[index] < 1 and blocks:
                    raise ValueError(f"stage {index} needs heads, positional or with content, but has none of either")
                of_stage = replace(attention, num_heads=attention.positional_heads + plan.content_heads[index])
            for inputs, channels, crop, side in blocks:
                of_block = replace(of_stage, neighbourhood=side) if side else of_stage
                options = (of_block, form, crop, dropouts.dropout, norm, _GROUP_TERMS[pose_index])
                stage.append(_BLOCKS[block](self.group, inputs, channels, *options))
                if block_norm:
                    stage.extend(_normed(norm, channels))
            if pool:
                stage.append(SpatialPool(pool, stride=2, on_inexact=self.on_inexact))
                stage.append(nn.Dropout(dropouts.pool_dropout))
            self.stages.append(stage)
            self.stage_channels += (channels,)
        self.num_features = channels
        self.reset_classifier(num_classes)
        if published:
            as_published(self)
        if pose_index == "published" and self.group.order > 1:
            warn_of_group_term(self.group)

    def make_head(self, num_classes: int) -> nn.Module:
        return PointwiseLinear(self.num_features, num_classes, bias=not self.published)

    def forward_stages(self, images: Tensor) -> list[Tensor]:
        self.check_images(images)
        self._check_size(*images.shape[-2:])
        features = [self.lifted(self.stem_pool(self.lifting(self.input_dropout(images))))]
        for stage in self.stages:
            features.append(stage(features[-1]))
        return features

    def group_matcher(self, coarse: bool = False) -> dict[str, Any]:
        """Which parameters make a layer, or a stage with coarse: timm's optimizers ask where rates decay by layer."""
        return {"stem": "^lift", "blocks": r"^stages\.(\d+)" if coarse else r"^stages\.(\d+)\.(\d+)"}

    def keep_stages(self, count: int) -> None:
        self.stages, self.stage_channels = self.stages[: count - 1], self.stage_channels[:count]
        self.num_features = self.stage_channels[-1]

    def side_after(self, side: int) -> int | None:
        """The side of the feature map for an image of `side` pixels; None where exactness or the map is lost."""
        for module in self.modules():
            if isinstance(module, SpatialPool):
                side = module.output_size(side) if module.is_exact_on(side) else 0
            elif isinstance(module, AttentionBlock | SelfAttention):  # and no wrapper, which has its crop, too
                side -= 2 * module.crop
            if side < 1:
                return None
        return side

    def _check_size(self, height: int, width: int) -> None:
        if self.on_inexact in ("warn", "allow"):
            return  # which are left to the pools
        for side in (height, width):
            if self.side_after(side) is None:
                good = nearest_sizes(side, (n for n in range(1, 2 * side + 512) if self.side_after(n)))
                if self.on_inexact == "widen":
                    raise ValueError(
                        f"crops and pools of this network leave nothing of a side of {side}: got {height}×{width} "
                        f"images; the smallest side is {good}"
                    )
                raise ValueError(
                    f"this network is exactly equivariant only on sizes that its crops and pools halve evenly: got "
                    f"{height}×{width} images, and {side} is not such a side; nearest ones that are: {good} "
                    "(if crops and pools leave any of it, on_inexact='widen' stays exact by larger windows of its "
                    "pools, and 'warn' or 'allow' run it all the same; on the command line model.on_inexact=widen)"
                )


def _normed(norm: str, channels: int) -> nn.Sequential:
    return nn.Sequential(make_norm(norm, channels), nn.SiLU())
