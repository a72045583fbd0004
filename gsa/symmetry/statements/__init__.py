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
from gsa.symmetry.statements._constant_start import constant_start, equal_units_errors, unit_spread
from gsa.symmetry.statements._features import Shuffle, conjugate_training_errors, encryption_errors
from gsa.symmetry.statements._hidden_units import (
    equivalent_networks,
    hidden_orders,
    hidden_unit_errors,
    output_gradient_errors,
)
from gsa.symmetry.statements._matrices import (
    entrywise_error,
    invariance_error,
    permutation_matrix,
    permutation_matrix_errors,
)
from gsa.symmetry.statements._orders import feature_orders, head_order, twin
from gsa.symmetry.statements._patches import patch_shuffling, shuffled_patches
from gsa.symmetry.statements._readouts import readout_errors
from gsa.symmetry.statements._sets import set_order_errors
from gsa.symmetry.statements._tokens import (
    OverTokens,
    backward_errors,
    linear_gradient_errors,
    token_permutation_error,
)
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
    "OverTokens",
    "Sentence",
    "Shuffle",
    "attention_bias_errors",
    "attention_order_errors",
    "backward_errors",
    "bias_before_norm",
    "bias_is_mean_error",
    "conjugate_training_errors",
    "constant_start",
    "encryption_errors",
    "entrywise_error",
    "equal_units_errors",
    "equivalent_networks",
    "feature_orders",
    "head_order",
    "hidden_orders",
    "hidden_unit_errors",
    "invariance_error",
    "linear_gradient_errors",
    "output_gradient_errors",
    "patch_shuffling",
    "permutation_matrix",
    "permutation_matrix_errors",
    "readout_errors",
    "sentence",
    "sentence_errors",
    "set_order_errors",
    "shuffled_patches",
    "sinusoidal",
    "sinusoidal_similarity",
    "softmax_shift_error",
    "token_permutation_error",
    "twin",
    "unit_spread",
]
