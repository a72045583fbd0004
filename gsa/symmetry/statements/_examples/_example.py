"""An example of a statement: figures that vanish where it holds, and contrasts, which must not."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Example", "Figures", "example"]

_ZERO, _APART = 1e-9, 1e-3


@dataclass(frozen=True)
class Figures:
    """What an example measures.

    Attributes:
        zeros: {of what: figure that is 0 up to rounding where the statement holds}.
        contrasts: {of what: figure of something that has to differ}.
    """

    zeros: dict[str, float]
    contrasts: dict[str, float]

    def faults(self) -> list[str]:
        """A sentence for every figure that should vanish, below 1e-9, or differ, by more than 1e-3, and does not."""
        zeros = [(name, f) for name, f in self.zeros.items() if not f < _ZERO]  # nor NaN
        contrasts = [(name, f) for name, f in self.contrasts.items() if not _APART < f < math.inf]
        return [f"{name!r} must be 0 up to rounding, but is {f:.2g}" for name, f in zeros] + [
            f"{name!r} must differ, by more than {_APART:g}, but is {f:.2g}" for name, f in contrasts
        ]


@dataclass(frozen=True)
class Example:
    """A statement of the literature on a small network and data at random.

    Attributes:
        name: in a few words, joined by hyphens.
        sentence: the statement; where the source is imprecise, what holds.
        source: a heading of docs/coverage.md.
        functions: names of those of `gsa.symmetry.statements` that measure it.
        measure: makes networks and data in the default dtype, and measures; see `measured`.
    """

    name: str
    sentence: str
    source: str
    functions: tuple[str, ...]
    measure: Callable[[], Figures]

    def measured(self, seed: int = 0) -> Figures:
        """The figures, in float64; the caller's random numbers and default dtype stay as they are.

        Args:
            seed: of weights and data.

        Raises:
            ValueError: a seed that is negative, or of more than 63 bits.
        """
        if not 0 <= seed < 2**63:
            raise ValueError(f"seed must be 0 or more, and less than 2⁶³, but got {seed}")
        dtype = torch.get_default_dtype()
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.default_generator.manual_seed(seed)
            torch.set_default_dtype(torch.float64)
            try:
                return self.measure()
            finally:
                torch.set_default_dtype(dtype)


def example(source: str, *functions: Callable[..., Any]) -> Callable[[Callable[[], Figures]], Example]:
    """Make an example of the function that measures it: it is named after it, and its docstring is the sentence.

    Args:
        source, functions: as of `Example`.
    """

    def made(measure: Callable[[], Figures]) -> Example:
        names = tuple(function.__name__ for function in functions)
        return Example(
            measure.__name__.replace("_", "-"), " ".join((measure.__doc__ or "").split()), source, names, measure
        )

    return made
