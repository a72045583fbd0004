"""Statements that can be played, by document; the order is that of docs/coverage.md."""

from gsa.symmetry.statements._examples import (
    _biases,
    _constant_start,
    _encodings,
    _expressivity,
    _hidden_units,
    _minima,
    _permutations,
    _rigid_motions,
    _words,
)
from gsa.symmetry.statements._examples._example import Example, Figures

__all__ = ["Example", "Figures", "examples"]

_ALL = (
    *_permutations.EXAMPLES,
    *_words.EXAMPLES,
    *_rigid_motions.EXAMPLES,
    *_hidden_units.EXAMPLES,
    *_minima.EXAMPLES,
    *_constant_start.EXAMPLES,
    *_biases.EXAMPLES,
    *_encodings.EXAMPLES,
    *_expressivity.EXAMPLES,
)


def examples() -> dict[str, Example]:
    """An example of every statement, on small networks and data at random, in the order of docs/coverage.md.

    `examples()["tokens-forward"].measured(seed=3)` measures one; the command `gsa statements` prints them.

    Returns:
        {name: example}.
    """
    return {example.name: example for example in _ALL}
