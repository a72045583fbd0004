"""Tokens in another order, P Z: what a transformer does forward and backward."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._listening import heard
from gsa.symmetry._norm import norm, relative_error, zero_beside
from gsa.symmetry._orders import check_order
from gsa.symmetry.statements._gradients import flat

__all__ = ["OverTokens", "backward_errors", "linear_gradient_errors", "token_permutation_error"]


class OverTokens(nn.Module):
    """A layer as a map of tokens, [B, N, C] → [B, N, C′].

    Args:
        layer: `nn.MultiheadAttention` with batch_first=True, which becomes self-attention; or a layer of pictures or
            features, such as those of `gsa.nn`.
        grid: of a layer of pictures, what the N tokens are: (H, W), or (|H|, H, W).

    Raises:
        ValueError: attention that takes batches second; tokens that do not fill the grid.
    """

    __call__: Callable[..., Tensor]

    def __init__(self, layer: nn.Module, grid: tuple[int, ...] = ()) -> None:
        super().__init__()
        if isinstance(layer, nn.MultiheadAttention) and not layer.batch_first:
            raise ValueError("tokens are [B, N, C]: the attention needs batch_first=True, but has False")
        self.layer, self.grid = layer, grid

    def forward(self, tokens: Tensor) -> Tensor:
        if isinstance(self.layer, nn.MultiheadAttention):
            return self.layer(tokens, tokens, tokens, need_weights=False)[0]
        if math.prod(self.grid) != tokens.shape[1]:
            raise ValueError(f"a grid of {self.grid} has {math.prod(self.grid)} tokens, but got {tokens.shape[1]}")
        return self.layer(tokens.mT.unflatten(2, self.grid)).flatten(2).mT


def token_permutation_error(network: Callable[[Tensor], Tensor], tokens: Tensor, order: Tensor) -> float:
    """How far a map of tokens is from commuting with their order: ‖f(PZ) − P f(Z)‖ / ‖f(Z)‖.

    Source: "Permutation Equivariance" (forward pass of the transformer).

    Args:
        network: f, [B, N, C] → [B, N, C′]; a module is put in eval mode.
        tokens: Z, [B, N, C].
        order: int64 [N], PZ = Z[:, order].

    Raises:
        ValueError: no order of the tokens.
    """
    check_order(order, tokens.shape[1])
    with torch.no_grad(), evaluating(network):
        expected = network(tokens.clone()).clone()  # it may work in place
        return relative_error(network(tokens[:, order]), expected[:, order])


@dataclass(frozen=True)
class _Pass:
    """What one forward and backward pass leaves."""

    output: Tensor  # put back in order
    loss: Tensor
    tokens: Tensor  # gradient
    activations: dict[str, Tensor]  # gradients
    weights: Tensor  # gradients, side by side


def backward_errors(
    network: nn.Module, tokens: Tensor, order: Tensor, loss: Callable[[Tensor], Tensor]
) -> dict[str, float]:
    """Tokens permuted, outputs put back: the loss and every weight's gradient stay, those of activations are permuted.

        A₃ = Pᵀ f(PZ) = f(Z),   ∂l_P/∂W = ∂l/∂W,   ∂l_P/∂A_P = P ∂l/∂A

    Gradients of weights are compared side by side, relative to their norm as a whole: that of a key bias is zero.
    Source: "Permutation Equivariance" (backward propagation).

    Args:
        network: f, [B, N, C] → [B, N, C′], put in eval mode; its submodules' outputs of that shape are the A.
        tokens: Z, [B, N, C].
        order: int64 [N], PZ = Z[:, order].
        loss: l, of the output in its first order; one number.

    Returns:
        {"output", "loss", "weights", "tokens", "activations": relative error}, and "weights, not put back": how far
        the gradients of the weights are off where the output stays permuted, which is no error but the contrast.

    Raises:
        ValueError: no order of the tokens.
    """
    check_order(order, tokens.shape[1])
    stay, back = torch.arange(len(order)), order.argsort()
    with evaluating(network):
        plain = _passed(network, tokens, stay, loss)
        permuted = _passed(network, tokens[:, order], back, loss)
        forgotten = _passed(network, tokens[:, order], stay, loss)
    floor = zero_beside(plain.activations.values())
    return {
        "output": relative_error(permuted.output, plain.output),
        "loss": relative_error(permuted.loss, plain.loss),
        "weights": relative_error(permuted.weights, plain.weights),
        "tokens": relative_error(permuted.tokens, plain.tokens[:, order]),
        "activations": max(
            relative_error(permuted.activations[name], gradient[:, order], norm(gradient).clamp_min(floor))
            for name, gradient in plain.activations.items()
        ),
        "weights, not put back": relative_error(forgotten.weights, plain.weights),
    }


def linear_gradient_errors(linear: nn.Linear, x: Tensor, loss: Callable[[Tensor], Tensor]) -> dict[str, float]:
    """Backward through O = A Wᵀ: ∂l/∂A = ∂l/∂O W and ∂l/∂W = ∂l/∂Oᵀ A, against autograd.

    Source: "Permutation Equivariance" (total differential).

    Args:
        linear: W, with or without a bias.
        x: A, [N, C].
        loss: l of O; one number.

    Returns:
        {"input", "weight": relative error}.
    """
    x = x.detach().requires_grad_()
    output = linear(x)
    of_output, of_input, of_weight = torch.autograd.grad(loss(output), [output, x, linear.weight])
    return {
        "input": relative_error(of_output @ linear.weight.detach(), of_input),
        "weight": relative_error(of_output.T @ x.detach(), of_weight),
    }


def _passed(network: nn.Module, tokens: Tensor, back: Tensor, loss: Callable[[Tensor], Tensor]) -> _Pass:
    tokens = tokens.detach().requires_grad_()
    activations: dict[str, Tensor] = {}

    def keep(name: str, output: Tensor) -> None:
        if output.ndim == 3 and output.shape[:2] == tokens.shape[:2] and output.requires_grad:
            activations[name] = output

    with heard(network, keep):
        output = network(tokens * 1)  # it may work in place
    keep("output", output)
    output = output[:, back]
    value = loss(output)
    weights = [p for p in network.parameters() if p.requires_grad]
    found = torch.autograd.grad(value, [tokens, *activations.values(), *weights], materialize_grads=True)
    count = 1 + len(activations)
    gradients = dict(zip(activations, found[1:count], strict=True))
    return _Pass(output.detach(), value.detach(), found[0], gradients, flat(found[count:]))
