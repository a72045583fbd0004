"""What an output has of the plane of a picture, as its shape says."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

__all__ = ["on_plane"]


def on_plane(output: Tensor, shape: torch.Size) -> tuple[Tensor, Callable[[Tensor], Tensor]] | None:
    """An output as maps [B, …, h, w] and the way back from them; None where its shape is no map of the input.

    Args:
        output: maps, [B, h, w, C], [B, H, W] or tokens [B, N, C] with or without one of a class before them.
        shape: of the input, [..., H, W]; channels come last, and tokens are a grid, where h : w = H : W. What can be
            maps [B, C, h, w] of a layer that cuts borders, or takes every so many-th pixel, is such.
    """
    height, width = shape[-2:]
    if output.ndim == 4:
        rows, columns, last = output.shape[1:]
        if rows * width == columns * height and not _is_map((columns, last), (height, width)):
            return output.movedim(-1, 1), lambda maps: maps.movedim(1, -1)
    if output.ndim in (4, 5):  # those of a square are square
        return None if height == width and output.shape[-2] != output.shape[-1] else (output, lambda maps: maps)
    if output.ndim == 3 and output.shape[1:] == shape[-2:]:
        return output[:, None], lambda maps: maps[:, 0]
    if output.ndim == 3:
        for first in (0, 1):  # token of a class
            of_class, tokens = output[:, :first], output[:, first:]
            cells = tokens.shape[1]
            rows = math.isqrt(cells * height // width)
            if rows > 1 and rows * rows * width == cells * height and cells % rows == 0:
                maps = tokens.mT.unflatten(2, (rows, cells // rows))
                return maps, partial(_as_tokens, of_class)
    return None


def _is_map(sides: tuple[int, int], full: tuple[int, int]) -> bool:
    """Whether maps have these sides where k ≥ 0 pixels are cut and every s-th is taken: ⌊(n − k)/s⌋ or ⌈(n − k)/s⌉."""
    if sides[0] * full[1] == sides[1] * full[0]:
        return True
    for stride in range(1, max(full) + 1):
        least = [n - stride * side for n, side in zip(full, sides, strict=True)]  # of k, rounded up
        for first in (least, [k - stride + 1 for k in least]):  # rounded up, rounded down
            if max(*first, 0) <= min(first) + stride - 1:
                return True
    return False


def _as_tokens(of_class: Tensor, maps: Tensor) -> Tensor:
    return torch.cat((of_class, maps.flatten(2).mT), dim=1)
