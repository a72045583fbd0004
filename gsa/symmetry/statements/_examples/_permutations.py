"""Tokens and features in another order, forward and backward."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from gsa.nn import AttentionBlock, AttentionOptions
from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._examples._example import Figures, example
from gsa.symmetry.statements._examples._networks import (
    PatchTransformer,
    Placed,
    Squashed,
    another_order,
    attention,
    encoder,
)
from gsa.symmetry.statements._examples._sources import PERMUTATIONS
from gsa.symmetry.statements._features import Shuffle, conjugate_training_errors, encryption_errors
from gsa.symmetry.statements._matrices import (
    entrywise_error,
    invariance_error,
    permutation_matrix,
    permutation_matrix_errors,
)
from gsa.symmetry.statements._orders import feature_orders, head_order, twin
from gsa.symmetry.statements._patches import patch_shuffling, shuffled_patches
from gsa.symmetry.statements._sets import set_order_errors
from gsa.symmetry.statements._tokens import OverTokens, backward_errors, linear_gradient_errors, token_permutation_error

__all__ = ["EXAMPLES"]


@example(PERMUTATIONS, patch_shuffling, shuffled_patches)
def patches() -> Figures:
    """Vision transformers sense the places of patches by their positional encoding alone."""
    pictures, order = torch.rand(4, 1, 8, 8), another_order(16)
    found = patch_shuffling(PatchTransformer(positions=False), pictures, 2, order)
    again = shuffled_patches(shuffled_patches(pictures, 2, order), 2, order.argsort())
    placed = patch_shuffling(PatchTransformer(positions=True), pictures, 2, order)
    cut = patch_shuffling(PatchTransformer(positions=False), pictures, 1, another_order(64))
    return Figures(
        {
            "logits": found["logits"],
            "answers changed": 1 - found["shuffled accuracy"],
            "put back": relative_error(again, pictures),
        },
        {"with positions": placed["logits"], "single pixels shuffled": cut["logits"]},
    )


@example(PERMUTATIONS, token_permutation_error, invariance_error)
def tokens_forward() -> Figures:
    """A transformer commutes with the order of its tokens, f(PZ) = P f(Z): it is equivariant, and not invariant."""
    tokens, order, transformer = torch.randn(2, 6, 8), another_order(6), encoder(2)
    options = AttentionOptions(num_heads=2, head_dim=4, neighbourhood=None, encoding="constant")
    networks: dict[str, nn.Module] = {
        "encoder": transformer,
        "attention": OverTokens(attention()),
        "block of ours": OverTokens(AttentionBlock("Z2", 8, 8, options, norm="channel"), (1, 2, 3)),
        "linear map": nn.Linear(8, 8),
        "LayerNorm": nn.LayerNorm(8),
    }
    zeros = {name: token_permutation_error(network, tokens, order) for name, network in networks.items()}
    return Figures(
        zeros,
        {
            "with positions": token_permutation_error(Placed(transformer), tokens, order),
            "f(PZ) from f(Z)": invariance_error(lambda rows: transformer(rows[None])[0], tokens[0], order),
        },
    )


@example(PERMUTATIONS, entrywise_error)
def functions_of_entries() -> Figures:
    """Functions of entries let permutations pass, (P₁AP₂) ⊙ (P₁BP₂) = P₁(A ⊙ B)P₂; so does softmax."""
    a, b, orders = torch.randn(4, 5), torch.randn(4, 5), (another_order(4), another_order(5))
    return Figures(
        {
            "sigmoid": entrywise_error(torch.sigmoid, *orders, a),
            "product": entrywise_error(torch.mul, *orders, a, b),
            "softmax": entrywise_error(lambda m: m.softmax(1), *orders, a),
        },
        {"cumulative sum": entrywise_error(lambda m: m.cumsum(1), *orders, a)},
    )


@example(PERMUTATIONS, permutation_matrix, permutation_matrix_errors)
def permutation_matrices() -> Figures:
    """PA has the rows of A in another order, AP the columns, and Pᵀ = P⁻¹ takes them back."""
    a, order = torch.randn(5, 5), another_order(5)
    p = permutation_matrix(order)
    return Figures(permutation_matrix_errors(a, order), {"P (P A) from A": relative_error(p @ (p @ a), a)})


@example(PERMUTATIONS, linear_gradient_errors)
def linear_gradients() -> Figures:
    """The gradients of a linear map O = A Wᵀ are ∂l/∂A = ∂l/∂O W and ∂l/∂W = ∂l/∂Oᵀ A."""
    x = torch.randn(7, 5)
    squashed = linear_gradient_errors(Squashed(5, 3), x, _loss)
    return Figures(
        linear_gradient_errors(nn.Linear(5, 3), x, _loss),
        {f"{name}, with tanh behind": error for name, error in squashed.items()},
    )


@example(PERMUTATIONS, backward_errors)
def tokens_backward() -> Figures:
    """Tokens permuted and outputs put back: gradients of weights stay, those of activations are permuted."""
    tokens, order, target, transformer = torch.randn(2, 6, 8), another_order(6), torch.randn(2, 6, 8), encoder(2)

    def loss(output: Tensor) -> Tensor:
        return (output - target).square().sum()

    errors = backward_errors(transformer, tokens, order, loss)
    contrasts = {"weights, outputs not put back": errors.pop("weights, not put back")}
    placed = backward_errors(Placed(transformer), tokens, order, loss)
    return Figures(errors, contrasts | {"weights, with positions": placed["weights"]})


@example(PERMUTATIONS, feature_orders, head_order, twin)
def features() -> Figures:
    """Features in another order pass through a transformer with weights W_P = PᵀWP, if P respects the heads."""
    tokens, two_heads, one_head = torch.randn(2, 6, 8), attention(2), attention(1)

    def off(layer: nn.MultiheadAttention, order: Tensor, inner: Tensor | None = None) -> float:
        other = twin(OverTokens(layer), feature_orders(OverTokens(layer), order, inner))
        return relative_error(other(tokens[..., order]), OverTokens(layer)(tokens)[..., order])

    within, across = head_order(2, 4), torch.arange(8).view(2, 4).T.flatten()
    plain = OverTokens(two_heads)(tokens[..., within]), OverTokens(two_heads)(tokens)[..., within]
    return Figures(
        {"heads respected": off(two_heads, within), "one head, any order": off(one_head, another_order(8))},
        {"P across heads": off(two_heads, across), "weights left as they are": relative_error(*plain)},
    )


@example(PERMUTATIONS, conjugate_training_errors)
def twins_in_training() -> Figures:
    """A network with permuted weights stays the network's twin in training, rows and columns permuted: W_P = PᵀWP."""
    network, tokens, target, shuffle = encoder(2), torch.randn(2, 6, 8), torch.randn(2, 6, 8), _shuffle()

    def loss(output: Tensor) -> Tensor:
        return (output - target).square().mean()

    def steps(weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(weights, 0.1)

    errors = conjugate_training_errors(network, tokens, shuffle, loss, steps)
    contrasts = {"weights moved by training": errors.pop("moved")}
    elsewhere = conjugate_training_errors(network, tokens, shuffle, loss, steps, start=encoder(2))
    return Figures(errors, contrasts | {"trained weights, from another start": elsewhere["trained weights"]})


@example(PERMUTATIONS, set_order_errors)
def order_of_a_set() -> Figures:
    """The order of a set changes neither the output nor the gradients of weights; it matters to what stays in place."""
    network = _SetNetwork(encoder(1, dropout=0.2), nn.Linear(8, 3))
    errors = set_order_errors(network, torch.randn(2, 6, 8), another_order(6), _loss)
    return Figures(
        {
            "output": errors["output"],
            "gradients of weights": errors["weights"],
            "of elements, permuted": errors["elements, equivariant"],
        },
        {
            "of elements, as they stand": errors["elements, invariant"],
            "of a table of slots": errors["slots"],
            "output, a step of the table later": errors["slots, a step later"],
            "weights under dropout": errors["weights, dropout"],
        },
    )


@example(PERMUTATIONS, encryption_errors)
def encryption() -> Figures:
    """Permuted weights can serve as encryption: the network works on permuted data, and on no other."""
    errors = encryption_errors(encoder(2), torch.randn(2, 6, 8), _shuffle())
    zeros = {"with the key": errors.pop("with the key")}
    return Figures(zeros, errors)


class _SetNetwork(nn.Module):
    """A transformer and the mean of its tokens."""

    def __init__(self, body: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.body, self.head = body, head

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.body(tokens).mean(1))


def _loss(output: Tensor) -> Tensor:
    return output.square().sum()


def _shuffle() -> Shuffle:
    """Of 6 tokens, 8 features, the channels of 2 heads and 12 hidden units."""
    return Shuffle(another_order(8), another_order(6), head_order(2, 4), another_order(12))


EXAMPLES = (
    patches,
    tokens_forward,
    functions_of_entries,
    permutation_matrices,
    linear_gradients,
    tokens_backward,
    features,
    twins_in_training,
    order_of_a_set,
    encryption,
)
