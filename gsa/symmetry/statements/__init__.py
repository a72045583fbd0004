"""What theory says of group self-attention, as functions that measure it."""

from gsa.symmetry.statements._convolutions import as_self_attention, expression_error, pose_dependence
from gsa.symmetry.statements._kernel_sums import head_residual, kernel_sum_residual, moved_filters, sampled_filters

__all__ = [
    "as_self_attention",
    "expression_error",
    "head_residual",
    "kernel_sum_residual",
    "moved_filters",
    "pose_dependence",
    "sampled_filters",
]
