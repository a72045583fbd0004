"""Features in another order, Z P, with weights PᵀWP: forward, backward, in training, and as a cipher."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._norm import relative_error
from gsa.symmetry._orders import check_order
from gsa.symmetry.statements._gradients import Optimizer, flat, gradients
from gsa.symmetry.statements._orders import feature_orders, reordered, twin

__all__ = ["Shuffle", "conjugate_training_errors", "encryption_errors"]


@dataclass(frozen=True)
class Shuffle:
    """An order of tokens and of features, P_R Z P_C, with what goes with it inside the network.

    Attributes:
        order: int64 [C], of the features.
        rows: int64 [N], of the tokens; they stay when None.
        inner, hidden: see `feature_orders`.

    Raises:
        ValueError: one that is no permutation.
    """

    order: Tensor
    rows: Tensor | None = None
    inner: Tensor | None = None
    hidden: Tensor | None = None

    def __post_init__(self) -> None:
        for order in (self.order, self.rows, self.inner, self.hidden):
            if order is not None:
                check_order(order)

    def __call__(self, tokens: Tensor) -> Tensor:
        """[B, N, C] in this order."""
        return (tokens if self.rows is None else tokens[:, self.rows])[..., self.order]

    def back(self, tokens: Tensor) -> Tensor:
        """[B, N, C] as it was."""
        tokens = tokens[..., self.order.argsort()]
        return tokens if self.rows is None else tokens[:, self.rows.argsort()]


def conjugate_training_errors(
    network: nn.Module,
    tokens: Tensor,
    shuffle: Shuffle,
    loss: Callable[[Tensor], Tensor],
    optimizer: Optimizer = lambda weights: torch.optim.SGD(weights, 0.01),
    steps: int = 3,
    start: nn.Module | None = None,
) -> dict[str, float]:
    """Rows and columns together: a network with W_P = PᵀWP is the same network, and stays it in training.

        f_P(P_R Z P_C) = P_R f(Z) P_C,   ∂l/∂W_P = P_Cᵀ ∂l/∂W P_C,   ∂l/∂Z_P = P_R ∂l/∂Z P_C
        W_P = PᵀWP after every step

    Steps of optimizers that treat each weight alone (SGD, Adam) keep it. Adam divides rounding by its eps where a
    gradient is zero, as that of a key bias is. It all rests on the weights at the start: from others, training ends
    elsewhere. Source: "Permutation Equivariance" ("PZ … ZP?", "Is this true in practice?").

    Args:
        network: f, [B, N, C] → [B, N, C], of the kinds `feature_orders` knows; it is copied, not trained.
        tokens: Z, [B, N, C].
        shuffle: P_R and P_C.
        loss: l, of the output put back in order; one number.
        optimizer: made of a network's parameters.
        steps: of training.
        start: W_P at the start; the network's twin when None.

    Returns:
        {"output", "gradients", "activations", "trained output", "trained weights": relative error, "moved": relative
        change of the weights by training, without which the others would say little}; "gradients" are those of the
        weights, "activations" that of the tokens, as of whatever a network is given.
    """
    orders = feature_orders(network, shuffle.order, shuffle.inner, shuffle.hidden)
    network = twin(network, {})
    other = twin(network, orders) if start is None else twin(start, {})
    with evaluating(network), evaluating(other):
        first = flat(network.parameters())
        errors = {"output": _output_error(network, other, tokens, shuffle)}
        expected = gradients(network, loss(network(tokens)))
        found = gradients(other, loss(shuffle.back(other(shuffle(tokens)))))
        errors["gradients"] = relative_error(flat(found.values()), flat(reordered(expected, orders).values()))
        of_tokens = _input_gradient(lambda z: loss(network(z)), tokens)
        of_moved = _input_gradient(lambda z: loss(shuffle.back(other(z))), shuffle(tokens))
        errors["activations"] = relative_error(of_moved, shuffle(of_tokens))
        _train(network, lambda: loss(network(tokens)), optimizer, steps)
        _train(other, lambda: loss(shuffle.back(other(shuffle(tokens)))), optimizer, steps)
        errors["trained output"] = _output_error(network, other, tokens, shuffle)
        trained = flat(twin(network, orders).parameters())
        errors["trained weights"] = relative_error(flat(other.parameters()), trained)
        errors["moved"] = relative_error(flat(network.parameters()), first)
    return errors


def _input_gradient(loss: Callable[[Tensor], Tensor], tokens: Tensor) -> Tensor:
    tokens = tokens.detach().requires_grad_()
    return torch.autograd.grad(loss(tokens), tokens)[0]


def encryption_errors(network: nn.Module, tokens: Tensor, shuffle: Shuffle) -> dict[str, float]:
    """A network in another order works on data in that order, and on no other.

        P_Rᵀ f_P(P_R Z P_C) P_Cᵀ = f(Z),   but f_P(Z) ≠ f(Z), and P_Rᵀ f(P_R Z P_C) P_Cᵀ ≠ f(Z)

    Source: "Permutation Equivariance" (encryption). The order of tokens alone hides nothing from a network without
    positions: features are the key.

    Args:
        network, tokens, shuffle: as in `conjugate_training_errors`.

    Returns:
        {"with the key": relative error, which is rounding; "plain data", "plain network": how far the output is off
        where only the network, or only the data, is permuted}.
    """
    other = twin(network, feature_orders(network, shuffle.order, shuffle.inner, shuffle.hidden))
    with torch.no_grad(), evaluating(network), evaluating(other):
        expected = network(tokens)
        return {
            "with the key": relative_error(shuffle.back(other(shuffle(tokens))), expected),
            "plain data": relative_error(other(tokens), expected),
            "plain network": relative_error(shuffle.back(network(shuffle(tokens))), expected),
        }


def _output_error(network: nn.Module, other: nn.Module, tokens: Tensor, shuffle: Shuffle) -> float:
    with torch.no_grad():
        return relative_error(other(shuffle(tokens)), shuffle(network(tokens)))


def _train(network: nn.Module, loss: Callable[[], Tensor], optimizer: Optimizer, steps: int) -> None:
    updates = optimizer(network.parameters())
    for _ in range(steps):
        updates.zero_grad()
        loss().backward()
        updates.step()
