"""Pictures among fragments of others, and pictures of which a part is missing."""

import numpy
import torch
from torch import Tensor

__all__ = ["cluttered", "occluded"]

_FRAGMENT = 7  # pixels


def cluttered(pictures: Tensor, fragments: int, random: numpy.random.Generator) -> Tensor:
    """Fragments of other pictures, squares of 7 pixels out of their middle, at random places; the brighter pixel stays.

    Args:
        pictures: [N, C, H, W], at least two, of at least 21 pixels.
        fragments: how many each picture gets.
        random: where pictures and places are drawn from.

    Returns:
        [N, C, H, W]

    Raises:
        ValueError: fragments that cannot be had.
    """
    count, (height, width) = len(pictures), pictures.shape[-2:]
    if fragments < 0 or (fragments and (count < 2 or min(height, width) < 3 * _FRAGMENT)):
        raise ValueError(
            f"clutter takes fragments ≥ 0 of at least two pictures of at least {3 * _FRAGMENT} pixels, but got "
            f"{fragments} of {count} pictures of {height}×{width}"
        )
    result, own = pictures.clone(), torch.arange(count)
    for _ in range(fragments):
        other = (own + torch.from_numpy(random.integers(1, count, count))) % count
        from_ = _square(_places(random, count, height, width, _FRAGMENT))
        to = _square(_places(random, count, height, width, 0))
        fragment = pictures[other[:, None, None], :, *from_]  # [N, 7, 7, C]
        here = (own[:, None, None], slice(None), *to)
        result[here] = torch.maximum(result[here], fragment)
    return result


def occluded(pictures: Tensor, side: int, random: numpy.random.Generator) -> Tensor:
    """A square of zeros at a random place of every picture.

    Args:
        pictures: [N, C, H, W].
        side: of the square, in pixels.
        random: where places are drawn from.

    Returns:
        [N, C, H, W]

    Raises:
        ValueError: a side that does not fit.
    """
    count, (height, width) = len(pictures), pictures.shape[-2:]
    if not 0 <= side <= min(height, width):
        raise ValueError(f"the side of the occlusion must be in [0, {min(height, width)}], but got {side}")
    rows, columns = (
        torch.from_numpy(random.integers(0, length - side + 1, count))[:, None] for length in (height, width)
    )
    y, x = torch.arange(height), torch.arange(width)
    hidden = ((y >= rows) & (y < rows + side))[:, :, None] & ((x >= columns) & (x < columns + side))[:, None, :]
    return pictures.masked_fill(hidden[:, None], 0)


def _places(random: numpy.random.Generator, count: int, height: int, width: int, margin: int) -> tuple[Tensor, Tensor]:
    """Upper left corners of fragments that keep away from the border."""
    rows, columns = (
        torch.from_numpy(random.integers(margin, length - _FRAGMENT - margin + 1, count)) for length in (height, width)
    )
    return rows, columns


def _square(corners: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Rows [N, 7, 1] and columns [N, 1, 7] of the fragments with these corners."""
    steps = torch.arange(_FRAGMENT)
    return corners[0][:, None, None] + steps[:, None], corners[1][:, None, None] + steps
