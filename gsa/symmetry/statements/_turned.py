"""A neighbourhood whose places are turned, and everything else as it was."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from gsa.encodings import Neighbourhood

__all__ = ["turned_by"]


def turned_by(neighbourhood: Neighbourhood, matrix: Tensor) -> Neighbourhood:
    """The same cells, of which encodings are told that they lie at Mu in the place of u.

    Args:
        neighbourhood: of an encoding or a layer.
        matrix: M, [2, 2], acting on (x, y).
    """
    return _Turned(neighbourhood.size, neighbourhood.window, matrix)


@dataclass(frozen=True)
class _Turned(Neighbourhood):
    """Its places are those of the window, turned."""

    matrix: Tensor | None = None

    def pixels(self, height: int, width: int, like: Tensor) -> Tensor:
        return self._turned(super().pixels, height, width, like)

    def positions(self, height: int, width: int, like: Tensor) -> Tensor:
        return self._turned(super().positions, height, width, like)

    def _turned(self, places: Callable[[int, int, Tensor], Tensor], height: int, width: int, like: Tensor) -> Tensor:
        assert self.matrix is not None
        return places(height, width, like) @ self.matrix.to(like).T
