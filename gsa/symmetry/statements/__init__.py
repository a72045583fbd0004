"""What theory says of group self-attention, as functions that measure it."""

from gsa.symmetry.statements._convolutions import as_self_attention, expression_error, pose_dependence
from gsa.symmetry.statements._kernel_sums import head_residual, kernel_sum_residual, moved_filters, sampled_filters
from gsa.symmetry.statements._linear_maps import (
    attention_map,
    convolution_map,
    four_examples,
    linear_map_errors,
    moves,
)
from gsa.symmetry.statements._uniqueness import closest_encodings, encoding_vectors

__all__ = [
    "as_self_attention",
    "attention_map",
    "closest_encodings",
    "convolution_map",
    "encoding_vectors",
    "expression_error",
    "four_examples",
    "head_residual",
    "kernel_sum_residual",
    "linear_map_errors",
    "moved_filters",
    "moves",
    "pose_dependence",
    "sampled_filters",
]
