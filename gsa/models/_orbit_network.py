"""An ordinary network in every pose of its input: invariant, without an equivariant layer."""

from torch import Tensor, nn

from gsa.groups import Group
from gsa.models._network import Network
from gsa.nn import OrbitPooling

__all__ = ["OrbitNetwork"]


class OrbitNetwork(Network):
    """A network f that is shown every picture in all poses; the largest of its features go to one linear map.

        logits(x) = W max_h f(h⁻¹ x) + b

    Elements that do not map the pixel grid to itself turn the picture bilinearly, with zeros outside. Subclasses give
    f in their `__init__`.

    Source: Laptev et al., TI-POOLING, CVPR 2016.

    Args:
        group: the point group H, or its name.
        in_channels, num_classes: of the data.
        plain: f, pictures [B, C, H, W] → features [B, num_features].
        num_features: of f.

    Shapes:
        [B, C, H, W] → [B, num_classes]; H = W if the group turns.
    """

    def __init__(
        self, group: Group | str, in_channels: int, num_classes: int, plain: nn.Module, num_features: int
    ) -> None:
        super().__init__(group, in_channels, num_classes)
        self.orbit = OrbitPooling(plain, self.group)
        self.num_features, self.stage_channels = num_features, (num_features,)
        self.reset_classifier(num_classes)

    def make_head(self, num_classes: int) -> nn.Module:
        return nn.Linear(self.num_features, num_classes)

    def forward_stages(self, images: Tensor) -> list[Tensor]:
        """What is found in every pose: [B, num_features, |H|, 1, 1]."""
        self.check_images(images)
        return [self.orbit.forward_poses(images).movedim(0, 2)[..., None, None]]

    def forward_head(self, features: Tensor, pre_logits: bool = False) -> Tensor:
        """The largest of all poses to logits: [B, num_features, |H|, 1, 1] → [B, num_classes], or as it is."""
        pooled = super().forward_head(features, pre_logits=True)
        return pooled if pre_logits else self.head(pooled)
