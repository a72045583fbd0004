"""The plain network of RotMNIST in every pose of its input: a rival that has no equivariant layer at all."""

from torch import Tensor, nn

from gsa.groups import Group
from gsa.models._group_cnn import GroupCNN
from gsa.models._network import Network
from gsa.nn import OrbitPooling

__all__ = ["OrbitCNN"]


class OrbitCNN(Network):
    """An ordinary CNN that is shown every picture in all poses; the largest of its features go to one linear map.

        logits(x) = W max_h mean_i f(h⁻¹ x)(i) + b

    f is `GroupCNN` of the group Z2 without its head. Elements that do not map the pixel grid to itself turn the picture
    bilinearly, with zeros outside.

    Source: Laptev et al., TI-POOLING, CVPR 2016, with this network.

    Args:
        group: the point group H, or its name.
        in_channels, num_classes: of the data.
        channels: of every layer.
        bias: in every convolution.
        dropout: after every norm but the second.

    Shapes:
        [B, C, H, W] → [B, num_classes], for even sides of at least 28, H = W if the group turns

    Raises:
        ValueError: a number that is not positive; a size on which the pool loses exactness.
    """

    training_only = ("dropout",)

    def __init__(
        self,
        group: Group | str,
        in_channels: int = 1,
        num_classes: int = 10,
        *,
        channels: int = 28,
        bias: bool = False,
        dropout: float = 0.1,
    ) -> None:
        super().__init__(group, in_channels, num_classes)
        plain = GroupCNN("Z2", in_channels, 0, channels=channels, bias=bias, dropout=dropout)
        self.orbit = OrbitPooling(plain, self.group)
        self.num_features, self.stage_channels = channels, (channels,)
        self.reset_classifier(num_classes)

    def make_head(self, num_classes: int) -> nn.Module:
        return nn.Linear(self.num_features, num_classes)

    def forward_stages(self, images: Tensor) -> list[Tensor]:
        """What is found in every pose: [B, channels, |H|, 1, 1]."""
        self.check_images(images)
        return [self.orbit.forward_poses(images).movedim(0, 2)[..., None, None]]

    def forward_head(self, features: Tensor, pre_logits: bool = False) -> Tensor:
        """The largest of all poses to logits: [B, channels, |H|, 1, 1] → [B, num_classes], or as it is."""
        pooled = super().forward_head(features, pre_logits=True)
        return pooled if pre_logits else self.head(pooled)
