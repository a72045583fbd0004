"""What theory says of group self-attention, as functions that measure it."""

from gsa.symmetry.statements._concatenation import by_concatenation, concatenation_error
from gsa.symmetry.statements._convolutions import as_self_attention, expression_error, pose_dependence
from gsa.symmetry.statements._kernel_sums import head_residual, kernel_sum_residual, moved_filters, sampled_filters
from gsa.symmetry.statements._linear_maps import (
    attention_map,
    convolution_map,
    four_examples,
    linear_map_errors,
    moves,
)
from gsa.symmetry.statements._steerability import drift_by_depth, interpolation_errors, steering_errors
from gsa.symmetry.statements._uniqueness import closest_encodings, encoding_vectors
from gsa.symmetry.statements._universality import fit_labels, orbit_gap

__all__ = [
    "as_self_attention",
    "attention_map",
    "by_concatenation",
    "closest_encodings",
    "concatenation_error",
    "convolution_map",
    "drift_by_depth",
    "encoding_vectors",
    "expression_error",
    "fit_labels",
    "four_examples",
    "head_residual",
    "interpolation_errors",
    "kernel_sum_residual",
    "linear_map_errors",
    "moved_filters",
    "moves",
    "orbit_gap",
    "pose_dependence",
    "sampled_filters",
    "steering_errors",
]
