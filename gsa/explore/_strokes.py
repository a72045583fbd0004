"""Digits drawn with a pen of our own, for a first look that needs no data."""

from itertools import pairwise

import torch
from torch import Tensor

__all__ = ["DIGITS", "drawn"]

# Strokes as corners (x to the right, y downwards) in a box of 1×1.
DIGITS: dict[str, tuple[tuple[tuple[float, float], ...], ...]] = {
    "2": (((0.2, 0.2), (0.4, 0.02), (0.65, 0.05), (0.75, 0.25), (0.6, 0.5), (0.2, 0.98), (0.85, 0.98)),),
    "3": (
        (
            (0.2, 0.08), (0.5, 0.0), (0.75, 0.12), (0.7, 0.36), (0.45, 0.48),
            (0.75, 0.6), (0.8, 0.84), (0.5, 1.0), (0.2, 0.92),
        ),
    ),
    "7": (((0.15, 0.05), (0.8, 0.02), (0.5, 0.5), (0.35, 1.0)), ((0.25, 0.52), (0.75, 0.5))),
}  # fmt: skip

_PEN = 0.75  # half the width of a line, in pixels
_SOFT = 0.8  # over which its border fades, in pixels


def drawn(digit: str, side: int = 12) -> Tensor:
    """One of our digits, in the middle of a dark picture: float [1, side, side] in [0, 1].

    Args:
        digit: one of `DIGITS`.
        side: of the picture in pixels; that of the digit is 7/12 of it, from the middle of one line to that of another.

    Raises:
        ValueError: a digit that is not drawn.
    """
    if digit not in DIGITS:
        raise ValueError(f"digits drawn are {', '.join(DIGITS)}, but got {digit!r}")
    row, column = torch.meshgrid(torch.arange(side) + 0.5, torch.arange(side) + 0.5, indexing="ij")
    pixels = torch.stack((column, row), dim=-1)
    nearest = torch.full((side, side), torch.inf)
    for stroke in DIGITS[digit]:
        corners = ((torch.tensor(stroke) - 0.5) * 7 / 12 + 0.5) * side
        for start, end in pairwise(corners):
            along = ((pixels - start) @ (end - start) / (end - start).square().sum()).clamp(0, 1)
            nearest = torch.minimum(nearest, (pixels - start - along[..., None] * (end - start)).norm(dim=-1))
    return (1 - (nearest - _PEN) / _SOFT).clamp(0, 1)[None]
