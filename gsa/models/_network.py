"""What all networks share: features, then a head whose scores are pooled over pixels and poses."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gsa import groups
from gsa._checks import check_choice, check_floating, check_positive, is_count
from gsa._remembered import write_group
from gsa.groups import Group
from gsa.models._picture_format import PictureFormat
from gsa.nn import no_weight_decay

__all__ = ["Network"]


class Network(nn.Module):
    """images → forward_features → forward_head → logits.

    Subclasses define `forward_stages`, `num_features` and `make_head`, a map to classes at every pixel and pose, and
    end their `__init__` with `reset_classifier(num_classes)`.

    Args:
        group: the point group H, or its name.
        in_channels, num_classes: of the data; with num_classes=0 there is no head, and the features are pooled.
        pixels, poses: how scores are pooled: "sum", "mean" or "max" over pixels; "max" or "mean" over poses.

    Attributes:
        training_only: keywords that change how the network learns, but not what it computes, such as its dropouts.
        group, in_channels, num_classes: as given.
        num_features: channels of the features before the head.
        stage_channels: channels of all of `forward_stages`; empty where a network does not say.
        image_size: side of the pictures that it is made for, where `gsa.create_model` made it; others may do as well.
        pictures: what it was trained on, and how such pictures are normalised; None until it has been trained.

    Shapes:
        [B, C, H, W] → [B, num_classes], or [B, num_features] without a head

    Raises:
        ValueError: an argument out of its range.
    """

    training_only: ClassVar[tuple[str, ...]] = ()
    group: Group
    in_channels: int
    num_classes: int
    pixels: str
    poses: str
    num_features: int
    stage_channels: tuple[int, ...] = ()
    head: nn.Module
    pictures: PictureFormat | None = None
    image_size: int | None = None
    __call__: Callable[..., Tensor]

    def __init__(
        self, group: Group | str, in_channels: int, num_classes: int, pixels: str = "mean", poses: str = "max"
    ) -> None:
        super().__init__()
        check_positive(in_channels=in_channels)
        _check_classes(num_classes)
        check_choice(("sum", "mean", "max"), pixels=pixels)
        check_choice(("max", "mean"), poses=poses)
        self.group, self.in_channels, self.num_classes = groups.group(group), in_channels, num_classes
        self.pixels, self.poses = pixels, poses
        write_group(self)

    def forward(self, images: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(images))

    def forward_features(self, images: Tensor) -> Tensor:
        """The feature before the head: [B, C, H, W] → [B, num_features, |H|, H′, W′]."""
        return self.forward_stages(images)[-1]

    def forward_stages(self, images: Tensor) -> list[Tensor]:
        """The features on the way, the lifted one first, that before the head last: [B, C, |H|, H′, W′] each."""
        raise NotImplementedError

    def check_images(self, images: Tensor) -> None:
        """Refuse what are no floating pictures [B, C, H, W] of as many channels as the network takes.

        Raises:
            ValueError: with the shape, and how it becomes one that is taken.
        """
        check_floating(images, "the network")
        shape = images.shape
        if len(shape) == 4 and shape[1] == self.in_channels:
            return
        how = ""
        if len(shape) == 4 and shape[3] == self.in_channels:
            how = ": images.movedim(-1, 1) has the channels first"
        elif len(shape) == 3 and shape[0] == self.in_channels:
            how = ": image[None] is a batch of one"
        raise ValueError(
            f"the network takes images [B, {self.in_channels}, H, W], but got the shape {list(shape)}{how}"
        )

    def keep_stages(self, count: int) -> None:
        """Take away what leads only to features after the first `count`, if there is no head and it can be cut."""

    def make_head(self, num_classes: int) -> nn.Module:
        """A new head: [B, num_features, |H|, H′, W′] → [B, num_classes, |H|, H″, W″]."""
        raise NotImplementedError

    def reset_classifier(self, num_classes: int) -> None:
        """Give the network a new head, untrained; 0 takes the head away.

        Raises:
            ValueError: a number of classes that is negative or no integer.
        """
        _check_classes(num_classes)
        like = next(self.parameters(), torch.empty(0))
        self.num_classes = int(num_classes)
        head = self.make_head(num_classes) if num_classes else nn.Identity()
        self.head = head.to(like.device, like.dtype).train(self.training)
        if self.pictures is not None:
            self.pictures = self.pictures.with_classes(self.num_classes)

    def get_classifier(self) -> nn.Module:
        """The head, by the name that timm has for it."""
        return self.head

    @property
    def pretrained_cfg(self) -> dict[str, Any]:
        """What it was trained on, as `timm.data.resolve_model_data_config` asks.

        Until it has been trained, what it is made for, with values from −1 to 1; empty where nobody knows.
        """
        side, mean, std = self.image_size, (0.5,) * self.in_channels, (0.5,) * self.in_channels
        if self.pictures is not None:
            side, mean, std = self.pictures.image_size, self.pictures.mean, self.pictures.std
        if side is None:
            return {}
        size = (self.in_channels, side, side)
        return {"input_size": size, "crop_pct": 1.0, "interpolation": "bilinear", "mean": mean, "std": std}

    def no_weight_decay(self) -> set[str]:
        """Names of the parameters that say where heads look, which should not decay, as timm's optimizers ask."""
        return no_weight_decay(self)

    def forward_head(self, features: Tensor, pre_logits: bool = False) -> Tensor:
        """Scores at every pixel and pose, pooled over both: [B, num_features, |H|, H′, W′] → [B, num_classes].

        With pre_logits the features are pooled in place of their scores, as with num_classes=0: → [B, num_features].

        Raises:
            ValueError: somebody's nn.Linear for a head.
        """
        if type(self.head) is nn.Linear and not pre_logits:
            raise ValueError(
                f"a head gives scores at every pixel and pose, [B, C, poses, H, W], and nn.Linear takes vectors: "
                f"reset_classifier({self.head.out_features}) makes a new one"
            )
        scores = (features if pre_logits else self.head(features)).flatten(-2)
        over_pixels = {"sum": scores.sum, "mean": scores.mean, "max": scores.amax}[self.pixels](-1)
        return over_pixels.amax(-1) if self.poses == "max" else over_pixels.mean(-1)

    def extra_repr(self) -> str:
        return f"{self.group.name}, scores: {self.pixels} over pixels, {self.poses} over poses"


def _check_classes(num_classes: int) -> None:
    if not is_count(num_classes):
        raise ValueError(f"num_classes must be a positive integer, or 0 for no head, but got {num_classes!r}")
