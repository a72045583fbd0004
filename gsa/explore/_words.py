"""The three words in every order, with every encoding, at every position: numbers, and rows that stayed equal."""

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gsa.explore._packed import packed
from gsa.symmetry.statements import sentence

__all__ = ["words"]

_ENCODINGS = ("none", "absolute", "sinusoidal", "rotary")
_ORDERS = tuple(itertools.permutations(range(3)))
_MATRICES = (
    "embeddings", "added", "inputs", "query", "key", "value", "turned_query", "turned_key", "scores", "attention",
    "output",
)  # fmt: skip
_CLOSE = 1e-9


def words(positions: int = 13) -> dict[str, Any]:
    """All matrices of `gsa.symmetry.statements.sentence`, and which rows are those of the sentence as it stood.

    A row stayed equal where the same word had it in the first order at position 0 with the same encoding; the columns
    of scores and attention are permuted along with the words.

    Args:
        positions: of the first word in the text, from 0.

    Returns:
        Plain values for JSON: the axes "encodings", "orders" and "positions", "weights", and by matrix "values", packed
        [encodings, orders, positions, 3, columns], and "stayed", [encodings][orders][positions][3] of 0 and 1.

    Raises:
        ValueError: less than one position.
    """
    if positions < 1:
        raise ValueError(f"there must be at least 1 position, but got {positions}")
    axes = (len(_ENCODINGS), len(_ORDERS), positions)
    cases = list(itertools.product(_ENCODINGS, _ORDERS, range(positions)))
    found = [sentence(*case) for case in cases]
    before = {encoding: sentence(encoding) for encoding in _ENCODINGS}
    start = before["none"]

    def by_case(rows: list[Tensor]) -> Tensor:
        return torch.stack(rows).unflatten(0, axes)

    return {
        "words": list(start.words),
        "encodings": list(_ENCODINGS),
        "orders": [list(order) for order in _ORDERS],
        "positions": positions,
        "weights": {name: getattr(start, f"{name}_weight").tolist() for name in ("query", "key", "value")},
        "values": {name: packed(by_case([getattr(now, name) for now in found])) for name in _MATRICES},
        "stayed": {
            name: by_case(
                [
                    _stayed(getattr(now, name), getattr(before[encoding], name), order)
                    for now, (encoding, order, _) in zip(found, cases, strict=True)
                ]
            ).tolist()
            for name in _MATRICES
        },
    }


def _stayed(now: Tensor, before: Tensor, order: Sequence[int]) -> Tensor:
    """Whether the rows of a matrix are those of the same words in the first order at position 0: int [3]."""
    expected = before[list(order)]
    if expected.shape[1] == 3:  # a column for each word
        expected = expected[:, list(order)]
    return ((now - expected).abs().amax(1) < _CLOSE).int()
