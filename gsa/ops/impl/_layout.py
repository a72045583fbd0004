"""How features lie in memory: [B, heads, poses, H, W, d] as [B, heads, d, poses, H, W], as layers keep them."""

from torch import Tensor

__all__ = ["channels_first", "empty_channels_first"]


def channels_first(feature: Tensor) -> Tensor:
    """The same feature in this layout; copied only if it is in another."""
    return feature.permute(0, 1, 5, 2, 3, 4).contiguous().permute(0, 1, 3, 4, 5, 2)


def empty_channels_first(like: Tensor, poses: int) -> Tensor:
    """An uninitialised feature of so many poses."""
    batch, heads, _, height, width, channels = like.shape
    return like.new_empty(batch, heads, channels, poses, height, width).permute(0, 1, 3, 4, 5, 2)
