"""A neighbourhood whose places are turned, and which encodings know its places."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from gsa.encodings import Encoding, Neighbourhood

__all__ = ["check_kind", "turned_by"]


def turned_by(neighbourhood: Neighbourhood, matrix: Tensor) -> Neighbourhood:
    """The same cells, of which encodings are told that they lie at Mu in the place of u.

    Args:
        neighbourhood: of an encoding or a layer.
        matrix: M, [2, 2], acting on (x, y).
    """
    return _Turned(neighbourhood.size, neighbourhood.window, matrix)


def check_kind(encoding: Encoding, *refused: str) -> None:
    """Refuse kinds of encodings of which a measure has nothing to look at.

    Args:
        encoding: any.
        refused: names of kinds.

    Raises:
        ValueError: one of these.
    """
    if encoding.name in refused:
        raise ValueError(f"expected an encoding that is not {' or '.join(refused)}, but got {encoding.name}")


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
