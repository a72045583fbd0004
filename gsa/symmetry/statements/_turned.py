"""A neighbourhood whose places are turned, and what encodings make of its places."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gsa.encodings import Encoded, Encoding, Neighbourhood

__all__ = ["check_kind", "encoded_ones", "turned_by"]


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


@torch.no_grad()
def encoded_ones(encoding: Encoding, neighbourhood: Neighbourhood, side: int) -> Encoded:
    """What an encoding makes of queries, keys and values of ones, on a map of side × side pixels."""
    heads = int(getattr(encoding, "num_heads", 1))  # of those that are made for a number of heads
    poses = 1 if encoding.lifting else encoding.group.order
    ones = encoding.inverse_matrices.new_ones(1, heads, poses, side, side, encoding.key_dim)
    return encoding(ones, ones, ones, neighbourhood)


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
