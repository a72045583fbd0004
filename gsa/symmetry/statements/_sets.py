"""Sets: what their order changes in the backward pass of a network that does not see it in the forward pass."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._norm import relative_error
from gsa.symmetry._orders import check_order
from gsa.symmetry.statements._gradients import flat

__all__ = ["set_order_errors"]


def set_order_errors(
    network: nn.Module, tokens: Tensor, order: Tensor, loss: Callable[[Tensor], Tensor], seed: int = 0
) -> dict[str, float]:
    """What the order of a set changes in a set network g with g(PZ) = g(Z).

    That "the invariance of Set Transformer only holds for forward pass, not for backward" is not so for its weights:
    as g(PZ; W) = g(Z; W) for all W, ∂l/∂W is the same, and training too, up to rounding. The order matters to what is
    not permuted with the set:

        elements:  ∂l/∂(PZ) = P ∂l/∂Z, equivariant, not invariant
        slots:     a table T added to the slots gets Σ_B P ∂l/∂Z, even at T = 0, where the forward pass is invariant;
                   after one step, T = −Σ_B ∂l/∂Z, it is not
        dropout:   one random mask falls on other elements

    Source: "Permutation Equivariance" ("Is this really useful?").

    Args:
        network: g, [B, N, C] → [B, K]; in eval mode, but for the last figure.
        tokens: Z, [B, N, C].
        order: int64 [N], PZ = Z[:, order].
        loss: l of the output; one number.
        seed: of the dropout masks.

    Returns:
        {"output", "weights", "elements, equivariant": relative errors, which are rounding for a set network;
        "elements, invariant", "slots", "slots, a step later", "weights, dropout": relative changes, the last 0
        without dropout}.

    Raises:
        ValueError: no order of the elements.
    """
    check_order(order, tokens.shape[1])
    with evaluating(network):
        output, elements, weights = _passed(network, tokens, loss)
        again, permuted, their_weights = _passed(network, tokens[:, order], loss)
        table = -elements.sum(0)
        with torch.no_grad():
            later = relative_error(network(tokens[:, order] + table), network(tokens + table))
    trained = copy.deepcopy(network).train()  # running statistics of the network stay as they are
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        dropped = _passed(trained, tokens, loss)[2]
        torch.manual_seed(seed)
        dropped_again = _passed(trained, tokens[:, order], loss)[2]
    return {
        "output": relative_error(again, output),
        "weights": relative_error(their_weights, weights),
        "elements, equivariant": relative_error(permuted, elements[:, order]),
        "elements, invariant": relative_error(permuted, elements),
        "slots": relative_error(permuted.sum(0), elements.sum(0)),
        "slots, a step later": later,
        "weights, dropout": relative_error(dropped_again, dropped),
    }


def _passed(network: nn.Module, tokens: Tensor, loss: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Output, gradient of the elements, and those of the weights side by side."""
    tokens = tokens.detach().requires_grad_()
    output = network(tokens)
    weights = [p for p in network.parameters() if p.requires_grad]
    elements, *others = torch.autograd.grad(loss(output), [tokens, *weights], materialize_grads=True)
    return output.detach(), elements, flat(others)
