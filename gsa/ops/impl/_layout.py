"""Features [B, heads, poses, H, W, d]: how they lie in memory, [B, heads, d, poses, H, W] as in layers, and borders."""

import torch.nn.functional as F
from torch import Tensor

__all__ = ["channels_first", "empty_channels_first", "with_border", "without_border"]


def channels_first(feature: Tensor) -> Tensor:
    """The same feature in this layout; copied only if it is in another."""
    return feature.permute(0, 1, 5, 2, 3, 4).contiguous().permute(0, 1, 3, 4, 5, 2)


def empty_channels_first(like: Tensor, poses: int, crop: int = 0) -> Tensor:
    """An uninitialised feature of so many poses, without so many pixels at every border."""
    batch, heads, _, height, width, channels = like.shape
    sides = height - 2 * crop, width - 2 * crop
    return like.new_empty(batch, heads, channels, poses, *sides).permute(0, 1, 3, 4, 5, 2)


def without_border(feature: Tensor, crop: int) -> Tensor:
    """The same feature without so many pixels at every border."""
    height, width = feature.shape[3:5]
    return feature[:, :, :, crop : height - crop, crop : width - crop]


def with_border(feature: Tensor, crop: int) -> Tensor:
    """The same feature with so many pixels of zeros at every border."""
    return F.pad(feature, (0, 0, *(crop,) * 4))
