"""The densely connected network of PatchCamelyon, on any group of the grid, plain and attentive."""

from typing import Literal

import torch
from torch import Tensor, nn

from gsa._checks import check_positive
from gsa.groups import Group
from gsa.models._network import Network
from gsa.nn import FeatureAttention, GroupConvolution, LiftingConvolution, SpatialPool, crop_border

__all__ = ["DenseNet"]

_DILATIONS = (4, 4, 3, 2, 1)  # of the spatial attention, by block; the lifting convolution has the first


class DenseNet(Network):
    """A lifting convolution, five dense blocks of one 3×3 layer each, and a 1×1 layer with a 2×2 mean between them.

        block:       x ← (convolution₃(relu(norm(x))), x without its border)
        transition:  x ← mean-pool(convolution₁(relu(norm(x))))

    Source: Veeling et al. 2018, as the public code of Romero et al. 2020 builds it; attention from the latter.

    Args:
        group: the point group H, or its name; on the grid.
        in_channels, num_classes: of the data.
        growth: channels of the lifting convolution, and of every block.
        attention: "none", or "feature" (α_F) on the input of every convolution.
        attention_hidden: inner width of its channel attention.

    Shapes:
        [B, C, H, W] → [B, num_classes], for 96×96 and other sides that are even before every pool

    Raises:
        ValueError: a group that is not on the grid; a number that is not positive; unknown attention; a size on
            which a pool loses exactness.
    """

    def __init__(
        self,
        group: Group | str,
        in_channels: int = 3,
        num_classes: int = 2,
        *,
        growth: int = 26,
        attention: Literal["none", "feature"] = "none",
        attention_hidden: int = 2,
    ) -> None:
        super().__init__(group, in_channels, num_classes, poses="mean")
        check_positive(growth=growth, attention_hidden=attention_hidden)
        if attention not in ("none", "feature"):
            raise ValueError(f"attention must be 'none' or 'feature', but got {attention!r}")

        self.attention, self.attention_hidden = attention, attention_hidden
        self.lifting = nn.Sequential(LiftingConvolution(self.group, in_channels, growth, 3, bias=False))
        if attention == "feature":
            images = FeatureAttention(self.group, in_channels, in_channels, 7, _DILATIONS[0], lifting=True)
            self.lifting.insert(0, images)
        self.blocks, self.transitions = nn.ModuleList(), nn.ModuleList()
        channels = growth
        for index, dilation in enumerate(_DILATIONS):
            is_last = index == len(_DILATIONS) - 1
            layer = self._convolution(channels, growth, 3, 5 if is_last else 7, dilation)
            self.blocks.append(nn.Sequential(nn.BatchNorm3d(channels), nn.ReLU(), layer))
            channels += growth
            if not is_last:
                layer = self._convolution(
                    channels, channels, 1, dilation=1 if index == len(_DILATIONS) - 2 else dilation
                )
                pool = SpatialPool(2, kind="average")
                self.transitions.append(nn.Sequential(nn.BatchNorm3d(channels), nn.ReLU(), layer, pool))
        self.num_features = channels
        self.stage_channels = tuple(range(growth, channels + 1, growth))
        self.reset_classifier(num_classes)

    def make_head(self, num_classes: int) -> nn.Module:
        layer = self._convolution(self.num_features, num_classes, 1, 3)
        return nn.Sequential(nn.BatchNorm3d(self.num_features), nn.ReLU(), layer)

    def forward_stages(self, images: Tensor) -> list[Tensor]:
        self.check_images(images)
        features = [self.lifting(images)]
        for index, block in enumerate(self.blocks):
            x = torch.cat([block(features[-1]), crop_border(features[-1], 1)], dim=1)
            features.append(self.transitions[index](x) if index < len(self.transitions) else x)
        return features

    def keep_stages(self, count: int) -> None:
        self.blocks, self.transitions = self.blocks[: count - 1], self.transitions[: count - 1]
        self.stage_channels = self.stage_channels[:count]
        self.num_features = self.stage_channels[-1]

    def _convolution(
        self, inputs: int, outputs: int, side: int, attended_over: int = 7, dilation: int = 1
    ) -> nn.Module:
        layer = GroupConvolution(self.group, inputs, outputs, side, bias=False)
        if self.attention == "none":
            return layer
        attention = FeatureAttention(self.group, inputs, self.attention_hidden, attended_over, dilation)
        return nn.Sequential(attention, layer)
