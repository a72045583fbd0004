"""The border of a picture: what lies beyond it, and borders cut off."""

from torch import Tensor

from gsa._checks import check_choice

__all__ = ["check_border", "check_crop", "crop_border", "zeros_beyond"]


def check_border(border: str) -> None:
    """Raise a ValueError unless `border` is one of the two kinds of what lies beyond a picture."""
    check_choice(("hidden", "zeros"), border=border)


def zeros_beyond(border: str, neighbourhood: int, crop: int) -> int:
    """Pixels of zeros put at every border, as many as windows reach beyond the picture after a crop."""
    return max(neighbourhood // 2 - crop, 0) if border == "zeros" else 0


def check_crop(x: Tensor, pixels: int) -> None:
    """Raise a ValueError where `pixels` cut from all four borders of [..., H, W] are negative, or leave nothing."""
    height, width = x.shape[-2:]
    if pixels < 0:
        raise ValueError(f"a crop must not be negative, but got {pixels} pixels")
    if min(height, width) <= 2 * pixels:
        raise ValueError(f"cropping {pixels} pixels from every border leaves nothing of a {height}×{width} map")


def crop_border(x: Tensor, pixels: int) -> Tensor:
    """Cut `pixels` from all four borders of [..., H, W].

    Raises:
        ValueError: a negative crop, or nothing would be left.
    """
    check_crop(x, pixels)
    height, width = x.shape[-2:]
    return x[..., pixels : height - pixels, pixels : width - pixels]
