"""Attention on the input of a group convolution."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gsa import groups
from gsa.groups import Group
from gsa.nn._attentive_convolution import check_attention
from gsa.nn._group_convolution import GroupConvolution, LiftingConvolution, check_maps

__all__ = ["FeatureAttention"]


class FeatureAttention(nn.Module):
    """Attention on the input of a group convolution (α_F): over channels and poses, and over positions.

        α_C(c, h) = σ(mlp(mean_i x) + mlp(max_i x)),  mlp = two group convolutions of side 1 with relu between
        α_S(i, h) = σ(group convolution of (mean_c, max_c)(α_C x))
        y         = (1 − α_C α_S) x

    On images the mlp has no poses, and the largest over the poses of a lifting convolution stands for α_S's argument.

    Source: Romero, Bekkers, Tomczak & Hoogendoorn 2020, attention on feature maps, as their public code evaluates it.

    Args:
        group: the point group H, or its name; on the grid.
        channels: C.
        hidden: width of the channel attention's inner layer.
        attention_size: odd side of the spatial attention's filter.
        dilation: of that filter.
        lifting: whether the input is an image.

    Shapes:
        [B, C, H, W] when lifting, else [B, C, |H|, H, W] → the same

    Raises:
        ValueError: a group that is not on the grid; a size that is not positive; an even attention_size; an input of
            another shape.
    """

    __call__: Callable[..., Tensor]

    def __init__(
        self,
        group: Group | str,
        channels: int,
        hidden: int,
        attention_size: int = 7,
        dilation: int = 1,
        lifting: bool = False,
    ) -> None:
        super().__init__()
        check_attention(hidden, attention_size)
        self.group = groups.group(group)
        pointwise = groups.group("Z2") if lifting else self.group
        self.first = GroupConvolution(pointwise, channels, hidden, 1, bias=False)
        self.second = GroupConvolution(pointwise, hidden, channels, 1, bias=False)
        kind = LiftingConvolution if lifting else GroupConvolution
        padding = dilation * (attention_size // 2)
        self.spatial = kind(self.group, 2, 1, attention_size, padding=padding, dilation=dilation, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        is_image = isinstance(self.spatial, LiftingConvolution)
        check_maps(self, x, (self.first.in_channels,) if is_image else (self.first.in_channels, self.group.order))
        features = x[:, :, None] if is_image else x
        mean, largest = features.mean((-2, -1), keepdim=True), features.amax((-2, -1), keepdim=True)
        attended = features * torch.sigmoid(self._mlp(mean) + self._mlp(largest))
        statistics = torch.cat([attended.mean(1, keepdim=True), attended.amax(1, keepdim=True)], 1)
        scores = self.spatial(statistics[:, :, 0] if is_image else statistics)
        if is_image:
            scores = scores.amax(2, keepdim=True)
        return (features - attended * torch.sigmoid(scores)).view_as(x)

    def _mlp(self, statistic: Tensor) -> Tensor:
        return self.second(self.first(statistic).relu())
