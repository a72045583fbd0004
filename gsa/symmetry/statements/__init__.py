"""Statements of the literature about symmetry in neural networks: functions that measure them on a network you give.

Tokens in another order are P Z = Z[:, order]; features in another order are Z[..., order], which is Z P for a P of
their own. Errors are relative, by `gsa.symmetry.relative_error`, in the dtype of what is given. What each statement
is, where it comes from, and its figure: docs/coverage.md.
"""

from gsa.symmetry.statements._biases import (
    attention_bias_errors,
    attention_order_errors,
    bias_before_norm,
    bias_is_mean_error,
    softmax_shift_error,
)
from gsa.symmetry.statements._concatenation import by_concatenation, concatenation_error
from gsa.symmetry.statements._constant_start import constant_start, equal_units_errors, unit_spread
from gsa.symmetry.statements._convolutions import as_self_attention, expression_error, pose_dependence, receptive_field
from gsa.symmetry.statements._examples import Example, Figures, examples
from gsa.symmetry.statements._features import Shuffle, conjugate_training_errors, encryption_errors
from gsa.symmetry.statements._hidden_units import (
    equivalent_networks,
    hidden_orders,
    hidden_unit_errors,
    output_gradient_errors,
)
from gsa.symmetry.statements._kernel_sums import head_residual, kernel_sum_residual, moved_filters, sampled_filters
from gsa.symmetry.statements._linear_maps import attention_map, convolution_map, four_examples, linear_map_errors, moves
from gsa.symmetry.statements._matrices import (
    entrywise_error,
    invariance_error,
    permutation_matrix,
    permutation_matrix_errors,
)
from gsa.symmetry.statements._minima import barrier, closest_twin, parameter_rank
from gsa.symmetry.statements._only_convolutions import only_convolutions
from gsa.symmetry.statements._orders import feature_orders, head_order, twin
from gsa.symmetry.statements._patches import patch_shuffling, shuffled_patches
from gsa.symmetry.statements._readouts import readout_errors
from gsa.symmetry.statements._rigid_motions import rigid_motion, rigid_motion_errors
from gsa.symmetry.statements._sets import set_order_errors
from gsa.symmetry.statements._steerability import drift_by_depth, interpolation_errors, steering_errors
from gsa.symmetry.statements._tokens import OverTokens, backward_errors, linear_gradient_errors, token_permutation_error
from gsa.symmetry.statements._told import told_elements
from gsa.symmetry.statements._uniqueness import closest_encodings, encoding_vectors
from gsa.symmetry.statements._universality import fit_labels, orbit_gap
from gsa.symmetry.statements._words import (
    ENCODINGS,
    Sentence,
    sentence,
    sentence_errors,
    sinusoidal,
    sinusoidal_similarity,
)

__all__ = [
    "ENCODINGS",
    "Example",
    "Figures",
    "OverTokens",
    "Sentence",
    "Shuffle",
    "as_self_attention",
    "attention_bias_errors",
    "attention_map",
    "attention_order_errors",
    "backward_errors",
    "barrier",
    "bias_before_norm",
    "bias_is_mean_error",
    "by_concatenation",
    "closest_encodings",
    "closest_twin",
    "concatenation_error",
    "conjugate_training_errors",
    "constant_start",
    "convolution_map",
    "drift_by_depth",
    "encoding_vectors",
    "encryption_errors",
    "entrywise_error",
    "equal_units_errors",
    "equivalent_networks",
    "examples",
    "expression_error",
    "feature_orders",
    "fit_labels",
    "four_examples",
    "head_order",
    "head_residual",
    "hidden_orders",
    "hidden_unit_errors",
    "interpolation_errors",
    "invariance_error",
    "kernel_sum_residual",
    "linear_gradient_errors",
    "linear_map_errors",
    "moved_filters",
    "moves",
    "only_convolutions",
    "orbit_gap",
    "output_gradient_errors",
    "parameter_rank",
    "patch_shuffling",
    "permutation_matrix",
    "permutation_matrix_errors",
    "pose_dependence",
    "readout_errors",
    "receptive_field",
    "rigid_motion",
    "rigid_motion_errors",
    "sampled_filters",
    "sentence",
    "sentence_errors",
    "set_order_errors",
    "shuffled_patches",
    "sinusoidal",
    "sinusoidal_similarity",
    "softmax_shift_error",
    "steering_errors",
    "token_permutation_error",
    "told_elements",
    "twin",
    "unit_spread",
]
