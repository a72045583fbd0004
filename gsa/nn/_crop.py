"""Borders cut off."""

from torch import Tensor

__all__ = ["crop_border"]


def crop_border(x: Tensor, pixels: int) -> Tensor:
    """Cut `pixels` from all four borders of [..., H, W].

    Raises:
        ValueError: a negative crop, or nothing would be left.
    """
    if pixels < 0:
        raise ValueError(f"a crop must not be negative, but got {pixels} pixels")
    height, width = x.shape[-2:]
    if min(height, width) <= 2 * pixels:
        raise ValueError(f"cropping {pixels} pixels from every border leaves nothing of a {height}×{width} map")
    return x[..., pixels : height - pixels, pixels : width - pixels]
