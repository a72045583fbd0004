"""Measure symmetry, then assert it; takes any callable."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gsa.symmetry._action import Action
from gsa.symmetry._assert import TOLERANCES, SymmetryReport, assert_equivariant
from gsa.symmetry._gradients import gradient_errors
from gsa.symmetry._group_action import GroupAction
from gsa.symmetry._layers import layer_errors
from gsa.symmetry._measure import equivariance_error, measured_group, permutation_error, translation_error
from gsa.symmetry._norm import relative_error
from gsa.symmetry._permutations import FeaturePermutations, TokenPermutations
from gsa.symmetry._report import LayerReport
from gsa.symmetry._shifts import Shifts

if TYPE_CHECKING:
    from gsa.symmetry import statements

__all__ = [
    "TOLERANCES",
    "Action",
    "FeaturePermutations",
    "GroupAction",
    "LayerReport",
    "Shifts",
    "SymmetryReport",
    "TokenPermutations",
    "assert_equivariant",
    "equivariance_error",
    "gradient_errors",
    "layer_errors",
    "measured_group",
    "permutation_error",
    "relative_error",
    "statements",
    "translation_error",
]


def __getattr__(name: str) -> Any:
    """`statements` are of layers, which what judges them does not know."""
    if name != "statements":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("gsa.symmetry.statements")
