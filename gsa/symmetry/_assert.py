"""Hold a module to its symmetry: exact where the grid allows, reported elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gsa.groups import Group
from gsa.symmetry._action import Action
from gsa.symmetry._evaluating import name_of
from gsa.symmetry._group_action import action
from gsa.symmetry._hints import hint
from gsa.symmetry._measure import equivariance_error

__all__ = ["TOLERANCES", "SymmetryReport", "assert_equivariant"]

TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}


@dataclass(frozen=True, repr=False)
class SymmetryReport:
    """Relative equivariance errors by element.

    Attributes:
        symmetry: whose elements they are.
        exact: elements that lose nothing, as those that map the pixel grid to itself: the error is the module's own.
        sampled: all others: the error includes what sampling the picture between pixels loses.
        tolerance: what `exact` is held to.
    """

    symmetry: Action
    exact: dict[int, float]
    sampled: dict[int, float]
    tolerance: float

    @property
    def failures(self) -> dict[int, float]:
        """Exact elements beyond the tolerance; NaN is beyond it."""
        return {g: error for g, error in self.exact.items() if not error <= self.tolerance}

    def __repr__(self) -> str:
        rows = [(g, error, "exact") for g, error in self.exact.items()]
        rows += [(g, error, "sampled") for g, error in self.sampled.items()]
        lines = [f"{self.symmetry.name}: relative equivariance error (exact elements within {self.tolerance:g})"]
        for g, error, kind in sorted(rows):
            mark = "  ← too large" if g in self.failures else ""
            lines.append(f"  {g:3d}  {self.symmetry.elements[g]:18s} {error:9.2e}  {kind}{mark}")
        return "\n".join(lines)


def assert_equivariant(
    module: Callable[[Tensor], Any], x: Tensor, group: Action | Group | str, tolerance: float | None = None
) -> SymmetryReport:
    """Assert that Φ commutes with every element that is exact on the grid, and report the others.

    Args:
        module, x, group: as in `equivariance_error`.
        tolerance: relative; by the dtype of the input when None (1e-10 in float64, 1e-5 in float32).

    Returns:
        The report, exact and sampled elements apart; `print` shows it.

    Raises:
        AssertionError: an exact element beyond the tolerance, with the whole report.
        ValueError: an output that the symmetry says nothing of, or that does not depend on the input; a group of
            which only the identity is exact.
    """
    if tolerance is None and isinstance(x, Tensor) and x.dtype not in TOLERANCES:
        raise ValueError(f"x must be of a floating dtype ({', '.join(map(str, TOLERANCES))}), but got {x.dtype}")
    symmetry = action(group)
    if not symmetry.moving:
        raise ValueError(
            f"of {symmetry.name} only the identity is exact on the grid, which nothing can break: `translation_error` "
            "measures translations, `equivariance_error` elements between the pixels"
        )
    errors = equivariance_error(module, x, symmetry)
    tolerance = TOLERANCES[x.dtype] if tolerance is None else tolerance
    exact = {g: errors[g] for g in symmetry.exact}
    sampled = {g: error for g, error in errors.items() if g not in exact}
    report = SymmetryReport(symmetry, exact, sampled, tolerance)
    if report.failures:
        names = ", ".join(symmetry.elements[g] for g in report.failures)
        why = hint(module, x, symmetry, tolerance)
        raise AssertionError(f"{name_of(module)} is not equivariant under {names}{why and f', {why}'}\n{report}")
    return report
