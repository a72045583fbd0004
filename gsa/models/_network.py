"""What all networks share: features, then a head whose scores are pooled over pixels and poses."""

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn

from gsa import groups
from gsa._checks import check_choice, check_positive
from gsa.groups import Group

__all__ = ["Network"]


class Network(nn.Module):
    """images → forward_features → forward_head → logits.

    Subclasses define `forward_features`, `num_features` and `head`, a pointwise map to classes at every pixel and pose.

    Args:
        group: the point group H, or its name.
        in_channels, num_classes: of the data.
        pixels, poses: how scores are pooled: "sum", "mean" or "max" over pixels; "max" or "mean" over poses.

    Attributes:
        training_only: keywords that change how the network learns, but not what it computes, such as its dropouts.
        group, num_classes: as given.
        num_features: channels of the features before the head.

    Shapes:
        [B, C, H, W] → [B, num_classes]
    """

    training_only: ClassVar[tuple[str, ...]] = ()
    num_features: int
    head: nn.Module
    __call__: Callable[..., Tensor]

    def __init__(
        self, group: Group | str, in_channels: int, num_classes: int, pixels: str = "mean", poses: str = "max"
    ) -> None:
        super().__init__()
        check_positive(in_channels=in_channels, num_classes=num_classes)
        check_choice(("sum", "mean", "max"), pixels=pixels)
        check_choice(("max", "mean"), poses=poses)
        self.group, self.num_classes = groups.group(group), num_classes
        self.pixels, self.poses = pixels, poses

    def forward(self, images: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(images))

    def forward_features(self, images: Tensor) -> Tensor:
        """The feature before the head: [B, C, H, W] → [B, num_features, |H|, H′, W′]."""
        raise NotImplementedError

    def forward_head(self, features: Tensor) -> Tensor:
        """Scores at every pixel and pose, pooled over both: [B, num_features, |H|, H′, W′] → [B, num_classes]."""
        scores = self.head(features).flatten(-2)
        over_pixels = {"sum": scores.sum, "mean": scores.mean, "max": scores.amax}[self.pixels](-1)
        return over_pixels.amax(-1) if self.poses == "max" else over_pixels.mean(-1)
