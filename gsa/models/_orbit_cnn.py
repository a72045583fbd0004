"""The plain network of RotMNIST in every pose of its input: a rival."""

from gsa.groups import Group
from gsa.models._group_cnn import GroupCNN
from gsa.models._orbit_network import OrbitNetwork

__all__ = ["OrbitCNN"]


class OrbitCNN(OrbitNetwork):
    """The `OrbitNetwork` of `GroupCNN` with the group Z2, without its head.

        logits(x) = W max_h mean_i f(h⁻¹ x)(i) + b

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
        plain = GroupCNN("Z2", in_channels, 0, channels=channels, bias=bias, dropout=dropout)
        super().__init__(group, in_channels, num_classes, plain, channels)
