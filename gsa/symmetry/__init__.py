"""Measure symmetry, then assert it; takes any callable."""

from gsa.symmetry import statements
from gsa.symmetry._assert import TOLERANCES, SymmetryReport, assert_equivariant
from gsa.symmetry._layers import LayerReport, layer_errors
from gsa.symmetry._measure import equivariance_error, permutation_error, relative_error, translation_error

__all__ = [
    "TOLERANCES",
    "LayerReport",
    "SymmetryReport",
    "assert_equivariant",
    "equivariance_error",
    "layer_errors",
    "permutation_error",
    "relative_error",
    "statements",
    "translation_error",
]
