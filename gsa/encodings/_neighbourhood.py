"""The relative positions a pixel attends to."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gsa._checks import check_choice, is_count

__all__ = ["Neighbourhood", "Rectangle"]

_WINDOWS = ("square", "disk")


@dataclass(frozen=True)
class Neighbourhood:
    """N(i): an n×n window around each pixel, or the whole map.

    Args:
        size: odd side n of the window in pixels; None attends globally.
        window: "square", mapped to itself by quarter turns and mirrors, or "disk" (offsets of length at most
            (n − 1)/2 pixels), mapped to itself by every rotation up to sampling. Global attention has no
            window.

    Raises:
        ValueError: even or non-positive size, unknown window.
    """

    size: int | None = 5
    window: str = "square"

    def __post_init__(self) -> None:
        size = self.size
        if size is not None and not (is_count(size) and size % 2):
            raise ValueError(
                "neighbourhood must be an odd number of pixels (1, 3, 5, …), so that it has a centre, "
                f"or None for global attention, but got {size!r}"
            )
        check_choice(_WINDOWS, window=self.window)

    def extent(self, height: int, width: int) -> tuple[int, int]:
        """Sides (U, V) of the rectangle of offsets, rows first; global: every pixel sees every other."""
        return (self.size, self.size) if self.size else (2 * height - 1, 2 * width - 1)

    def radius(self, height: int, width: int) -> float:
        """The length in pixels that counts as 1: (n − 1)/2, or max(H, W) − 1 for global attention.

        The same for both axes, so that turning a map changes no normalised offset; at least 1 because a
        single offset is 0 in every unit.
        """
        return max((self.size - 1) / 2 if self.size else max(height, width) - 1, 1)

    def pixels(self, height: int, width: int, like: Tensor) -> Tensor:
        """Relative positions j − i in pixels as (x, y), y up: [U, V, 2]."""
        return _centred_grid(*self.extent(height, width), like)

    def offsets(self, height: int, width: int, like: Tensor) -> Tensor:
        """Normalised relative positions (j − i)/radius as (x, y), y up: [U, V, 2]."""
        return self.pixels(height, width, like) / self.radius(height, width)

    def positions(self, height: int, width: int, like: Tensor) -> Tensor:
        """Normalised pixel positions i/radius as (x, y), centred, y up: [H, W, 2]."""
        return _centred_grid(height, width, like) / self.radius(height, width)

    def mask(self, height: int, width: int, device: torch.device) -> Tensor:
        """The offsets that belong to the window: bool [U, V]."""
        sides = self.extent(height, width)
        if self.size is None or self.window == "square":
            return torch.ones(sides, dtype=torch.bool, device=device)
        y, x = (2 * torch.arange(side, device=device) - (side - 1) for side in sides)  # in halves of a pixel: integers
        return x.square() + y[:, None].square() <= (self.size - 1) ** 2


@dataclass(frozen=True, init=False)
class Rectangle(Neighbourhood):
    """A window of any sides, without corners left out. The centre of an even side lies between pixels.

    Args:
        rows, columns: its sides in pixels.

    Raises:
        ValueError: sides that are no positive numbers.
    """

    rows: int = 1
    columns: int = 1

    def __init__(self, rows: int, columns: int) -> None:
        if not all(is_count(side) and side > 0 for side in (rows, columns)):
            raise ValueError(f"a rectangle has positive numbers of rows and columns, but got {rows!r} and {columns!r}")
        for name, value in (("size", max(rows, columns)), ("window", "square"), ("rows", rows), ("columns", columns)):
            object.__setattr__(self, name, value)

    def extent(self, height: int, width: int) -> tuple[int, int]:
        return self.rows, self.columns


def _centred_grid(rows: int, columns: int, like: Tensor) -> Tensor:
    """(x, y) of every cell of a rows × columns grid around its centre, y up: [rows, columns, 2]."""
    x = torch.arange(columns, device=like.device, dtype=like.dtype) - (columns - 1) / 2
    y = (rows - 1) / 2 - torch.arange(rows, device=like.device, dtype=like.dtype)
    return torch.stack((x.expand(rows, columns), y[:, None].expand(rows, columns)), dim=-1)
