"""The seven-layer group convolutional network of RotMNIST, plain and attentive."""

from typing import Literal

from torch import Tensor, nn

from gsa._checks import check_positive, check_probability
from gsa.groups import Group
from gsa.models._network import Network
from gsa.nn import AttentiveConvolution, GroupConvolution, LiftingConvolution, SpatialPool

__all__ = ["GroupCNN"]


class GroupCNN(Network):
    """Six 3×3 convolutions and one 4×4, without padding; batch norm and relu between; max-pool after the second.

    With the group Z2 it is an ordinary convolutional network. On 28×28 pictures the last map is one pixel.

    Source: Cohen & Welling 2016; with attention, Romero et al. 2020.

    Args:
        group: the point group H, or its name; on the grid.
        in_channels, num_classes: of the data.
        channels: of every layer but the last.
        bias: in every convolution.
        dropout: after every norm but the second.
        attention: "none", or "full" (α).
        attention_reduction: channels over the inner width of the channel attention.

    Shapes:
        [B, C, H, W] → [B, num_classes], for even sides of at least 28

    Raises:
        ValueError: a group that is not on the grid; a number that is not positive; unknown attention; attention with
            a bias; a size on which the pool loses exactness.
    """

    training_only = ("dropout",)

    def __init__(
        self,
        group: Group | str,
        in_channels: int = 1,
        num_classes: int = 10,
        *,
        channels: int = 20,
        bias: bool = False,
        dropout: float = 0.3,
        attention: Literal["none", "full"] = "none",
        attention_reduction: int = 2,
    ) -> None:
        super().__init__(group, in_channels, num_classes)
        check_positive(channels=channels, attention_reduction=attention_reduction)
        if attention not in ("none", "full"):
            raise ValueError(f"attention must be 'none' or 'full', but got {attention!r}")
        if attention == "full" and bias:
            raise ValueError("attentive convolutions have no bias: set bias=False")
        check_probability(dropout=dropout)
        self.num_features, self.stage_channels, self.bias = channels, (channels,) * 6, bias
        self.attention, self.attention_reduction = attention, attention_reduction
        self.layers = nn.Sequential()
        for index in range(6):
            self.layers.append(self._convolution(channels if index else in_channels, channels, 3, lifting=index == 0))
            self.layers.extend([nn.BatchNorm3d(channels), nn.ReLU()])
            self.layers.append(SpatialPool(2) if index == 1 else nn.Dropout(dropout))
        self.reset_classifier(num_classes)

    def make_head(self, num_classes: int) -> nn.Module:
        return self._convolution(self.num_features, num_classes, 4)

    def forward_stages(self, images: Tensor) -> list[Tensor]:
        self.check_images(images)
        features = [self.layers[:4](images)]
        for index in range(4, len(self.layers), 4):  # convolution, norm, relu, pool or dropout
            features.append(self.layers[index : index + 4](features[-1]))
        return features

    def keep_stages(self, count: int) -> None:
        self.layers, self.stage_channels = self.layers[: 4 * count], self.stage_channels[:count]

    def _convolution(self, inputs: int, outputs: int, side: int, lifting: bool = False) -> nn.Module:
        if self.attention == "full":
            hidden = max(inputs // self.attention_reduction, 1)
            return AttentiveConvolution(self.group, inputs, outputs, side, hidden, lifting=lifting)
        kind = LiftingConvolution if lifting else GroupConvolution
        return kind(self.group, inputs, outputs, side, bias=self.bias)
