"""Cyclic shifts of a picture."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import NamedTuple

import torch
from torch import Tensor

from gsa.symmetry._action import Action
from gsa.symmetry._plane import on_plane

__all__ = ["Shifts", "check_shift", "whole_shift"]


class _Maps(NamedTuple):
    maps: Tensor  # [B, …, h, w]
    back: Callable[[Tensor], Tensor]
    cells: tuple[int, int]  # by which they are shifted
    inside: Tensor  # [h, w], 1 where they are compared


class Shifts(Action):
    """Translations: what leaves a picture on one side comes in on the other.

        (T_s f)(i) = f(i − s mod (H, W)),   and s/p on a map of H/p × W/p cells

    Outputs [B] and [B, K] have to be invariant; [B, …, h, w] and [B, h, w, C] are maps, [B, N, C] tokens on a grid,
    perhaps behind a class token. A map is left out where the shift is no multiple of its stride p, or where H × W is
    neither p times the map nor a p-th of it. Padding with zeros breaks cyclic shifts at the border; a margin leaves out
    the cells that are near the border in either of the two pictures, so it need be no more than the reach of a layer.
    Gradients of weights are sums over all cells, those of the border among them.

    Args:
        shifts: (down, right) in pixels of the input, or one number for both.
        margin: in pixels of the input; on a map, in as many cells as it covers.

    Raises:
        ValueError: no shift, or a negative margin; when it acts, a shift that moves nothing, or a margin that leaves
            nothing of the picture.
    """

    name = "shifts"

    def __init__(self, *shifts: int | tuple[int, int], margin: int = 0) -> None:
        if not shifts:
            raise ValueError("expected shifts (down, right) in pixels, such as (16, 0), but got none")
        if margin < 0:
            raise ValueError(f"the margin must be at least 0 pixels, but got {margin}")
        self.shifts, self.margin = [whole_shift(shift) for shift in shifts], margin
        self.elements = [f"{down},{right}" for down, right in self.shifts]
        self.exact = range(len(shifts))

    def act(self, x: Tensor, element: int) -> Tensor:
        if x.ndim < 4:
            raise ValueError(f"shifts move pictures [B, …, H, W], but got the shape {list(x.shape)}")
        if 2 * self.margin >= min(x.shape[-2:]):
            raise ValueError(f"a margin of {self.margin} leaves nothing of a {x.shape[-2]}×{x.shape[-1]} picture")
        check_shift(self.shifts[element], x)
        return torch.roll(x, self.shifts[element], (-2, -1))

    @property
    def movable(self) -> str:
        return (
            "[B] or [B, K], or maps [B, …, h, w], [B, h, w, C] or tokens [B, N, C] of the input's sides, p times these "
            "or, with shifts by multiples of p, a p-th of them"
        )

    def moved(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        if output.shape[:1] != shape[:1]:
            return None
        if output.ndim in (1, 2):
            return output
        found = self._maps(output, element, shape)
        return None if found is None else found.back(torch.roll(found.maps, found.cells, (-2, -1)))

    def seen(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        if self.margin == 0 or output.ndim in (1, 2) or (found := self._maps(output, element, shape)) is None:
            return output
        return found.back(found.maps * found.inside) if found.inside.any() else None

    def _maps(self, output: Tensor, element: int, shape: torch.Size) -> _Maps | None:
        """None where the shift is not one of whole cells."""
        if (found := on_plane(output, shape)) is None:
            return None
        maps, back = found
        (height, width), (rows, columns), (down, right) = shape[-2:], maps.shape[-2:], self.shifts[element]
        if rows * width != columns * height or (height % rows and rows % height):
            return None
        if down * rows % height or right * columns % width:
            return None
        cells, edge = (down * rows // height, right * columns // width), -(-self.margin * rows // height)
        inside = maps.new_zeros(rows, columns)
        inside[edge : rows - edge, edge : columns - edge] = 1
        inside = inside * torch.roll(inside, cells, (0, 1))
        return _Maps(maps, back, cells, inside)


def whole_shift(shift: int | tuple[int, int]) -> tuple[int, int]:
    """(down, right) in pixels, of one number both.

    Raises:
        ValueError: other than whole pixels, or than two of them.
    """
    steps = (shift, shift) if isinstance(shift, Integral) else shift
    if not isinstance(steps, Sequence) or len(steps) != 2 or not all(isinstance(step, Integral) for step in steps):
        raise ValueError(
            f"a shift must be whole pixels (down, right), such as (16, 0), or one number for both, but got {shift!r}"
        )
    down, right = map(int, steps)
    return down, right


def check_shift(shift: tuple[int, int], x: Tensor) -> None:
    """Refuse a shift that moves nothing.

    Raises:
        ValueError: it is nothing, or whole sides of the picture.
    """
    if all(step % side == 0 for step, side in zip(shift, x.shape[-2:], strict=True)):
        raise ValueError(f"a shift by {shift} pixels moves nothing of a {x.shape[-2]}×{x.shape[-1]} picture")
