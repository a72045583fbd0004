"""Group self-attention networks."""

from collections.abc import Sequence

from torch import Tensor, nn

from gsa import groups
from gsa.groups import Group
from gsa.models._head import pooled_logits
from gsa.nn import AttentionBlock, LiftingSelfAttention, PointwiseLinear, SpatialPool, nearest_sizes
from gsa.nn import norm as make_norm

__all__ = ["GSANet"]


class GSANet(nn.Module):
    """GSA-Net: lifting self-attention, stages of residual blocks with pooling between, an invariant head.

        images → lifting → [blocks → max-pool] × stages → linear → pool over pixels → pool over poses → logits

    The logits do not change when the input is moved by an element of the group that is exact on the grid.

    Source: Romero & Cordonnier 2021, as their public code builds it, but for the order in a block's mlp (see
    `AttentionBlock`) and the head's bias.

    Args:
        group: the point group H, or its name.
        in_channels, num_classes: of the data.
        channels: channels after the lifting layer.
        blocks: number of residual blocks in each stage.
        expansion: factor on the channels at each stage's first block; 1 everywhere when None.
        crops: pixels cut from every border, for each block; 0 everywhere when None.
        pools: window of the stride-2 max-pool after each stage (2 for even maps, 3 for odd ones), 0 for none.
        num_heads: heads of every attention layer.
        head_dim: channels of a head; half of the layer's output channels when None.
        neighbourhood, window: where attention looks, as in the layers.
        encoding: name of the positional encoding.
        form: "summed" or "regular".
        norm: "sample" (the paper's), "channel" or "batch".
        lifted_norm, block_norm: norm and swish after the lifting layer; after every block.
        attention_dropout, value_dropout: in every attention layer, on the weights and on the values they weigh.
        input_dropout, dropout, pool_dropout: on the image, after every block's attention, after every pool.
        pixels, poses: how the head pools: "sum" (the paper's; the functions of "mean", but initial logits grow with
            the number of pixels), "mean" or "max" over pixels; "max" or "mean" over poses.
        on_inexact: what to do with images whose size makes a pool lose exactness: "raise", "warn" or "allow".
            Networks without poses (Z2) always allow it.

    Shapes:
        [B, C, H, W] → [B, num_classes]

    Raises:
        ValueError: an argument out of its range; an image size that loses exactness.
    """

    def __init__(
        self,
        group: Group | str,
        in_channels: int = 1,
        num_classes: int = 10,
        *,
        channels: int = 20,
        blocks: Sequence[int] = (2, 3),
        expansion: Sequence[int] | None = None,
        crops: Sequence[int] | None = None,
        pools: Sequence[int] = (2, 0),
        num_heads: int = 9,
        head_dim: int | None = None,
        neighbourhood: int | None = 5,
        window: str = "square",
        encoding: str = "functional",
        form: str = "summed",
        norm: str = "sample",
        lifted_norm: bool = False,
        block_norm: bool = False,
        attention_dropout: float = 0.0,
        value_dropout: float = 0.0,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        pool_dropout: float = 0.0,
        pixels: str = "mean",
        poses: str = "max",
        on_inexact: str = "raise",
    ) -> None:
        super().__init__()
        self.group = groups.group(group)
        expansion = tuple(expansion or (1,) * len(blocks))
        crops = tuple(crops or (0,) * sum(blocks))
        _check_lengths(blocks, expansion, crops, pools)
        _check_choice("pixels", pixels, ("sum", "mean", "max"))
        _check_choice("poses", poses, ("max", "mean"))
        _check_choice("on_inexact", on_inexact, ("raise", "warn", "allow"))
        if num_classes < 1:
            raise ValueError(f"num_classes must be positive, but got {num_classes}")
        self.pixels, self.poses = pixels, poses
        self.on_inexact = on_inexact if self.group.order > 1 else "allow"
        self.num_classes = num_classes

        def attention_options(out_channels: int) -> dict:
            return {
                "num_heads": num_heads,
                "head_dim": max(out_channels // 2, 1) if head_dim is None else head_dim,
                "neighbourhood": neighbourhood,
                "window": window,
                "encoding": encoding,
                "attention_dropout": attention_dropout,
                "value_dropout": value_dropout,
            }

        self.input_dropout = nn.Dropout(input_dropout)
        self.lifting = LiftingSelfAttention(self.group, in_channels, channels, **attention_options(channels))
        self.lifted = nn.Sequential(make_norm(norm, channels), nn.SiLU()) if lifted_norm else nn.Identity()

        self.stages = nn.ModuleList()
        remaining = iter(crops)
        for count, factor, pool in zip(blocks, expansion, pools, strict=True):
            stage = nn.Sequential()
            for index in range(count):
                out_channels = channels * factor if index == 0 else channels
                stage.append(
                    AttentionBlock(
                        self.group,
                        channels,
                        out_channels,
                        crop=next(remaining),
                        dropout=dropout,
                        norm=norm,
                        form=form,
                        **attention_options(out_channels),
                    )
                )
                channels = out_channels
                if block_norm:
                    stage.extend([make_norm(norm, channels), nn.SiLU()])
            if pool:
                stage.append(SpatialPool(pool, stride=2, on_inexact=self.on_inexact))
                stage.append(nn.Dropout(pool_dropout))
            self.stages.append(stage)
        self.num_features = channels
        self.head = PointwiseLinear(channels, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(images))

    def forward_features(self, images: Tensor) -> Tensor:
        """The feature before the head: [B, C, H, W] → [B, num_features, |H|, H′, W′]."""
        self._check_size(*images.shape[-2:])
        x = self.lifted(self.lifting(self.input_dropout(images)))
        for stage in self.stages:
            x = stage(x)
        return x

    def forward_head(self, features: Tensor) -> Tensor:
        """Classes at every pixel and pose, pooled over both: [B, num_features, |H|, H′, W′] → [B, num_classes]."""
        return pooled_logits(self.head(features), self.poses, self.pixels)

    def side_after(self, side: int) -> int | None:
        """The side of the feature map for an image of `side` pixels; None where exactness or the map is lost."""
        for module in self.modules():
            if isinstance(module, AttentionBlock):
                side -= 2 * module.crop
            elif isinstance(module, SpatialPool):
                side = module.output_size(side) if module.is_exact_on(side) else 0
            if side < 1:
                return None
        return side

    def _check_size(self, height: int, width: int) -> None:
        if self.on_inexact != "raise":
            return  # "warn" is left to the pools
        for side in (height, width):
            if self.side_after(side) is None:
                good = nearest_sizes(side, (n for n in range(1, 2 * side + 512) if self.side_after(n)))
                raise ValueError(
                    f"this network is exactly equivariant only on sizes that its crops and pools halve evenly: got "
                    f"{height}×{width} images, and {side} is not such a side; nearest ones that are: {good} "
                    "(on_inexact='warn' or 'allow' runs it all the same)"
                )


def _check_lengths(blocks, expansion, crops, pools) -> None:
    if not len(blocks) == len(expansion) == len(pools):
        raise ValueError(
            "blocks, expansion and pools need one entry a stage, "
            f"but got {len(blocks)}, {len(expansion)} and {len(pools)}"
        )
    if len(crops) != sum(blocks):
        raise ValueError(f"crops needs one entry a block ({sum(blocks)}), but got {len(crops)}")
    if any(factor != 1 and not count for count, factor in zip(blocks, expansion, strict=True)):
        raise ValueError(f"a stage without blocks cannot expand its channels: {blocks=}, {expansion=}")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {choices}, but got {value!r}")
