"""What is read of all tokens at the end: which read-outs forget their order."""

from collections.abc import Callable

import torch
from torch import Tensor

from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._norm import relative_error
from gsa.symmetry._orders import check_order

__all__ = ["readout_errors"]


def readout_errors(
    network: Callable[[Tensor], Tensor], tokens: Tensor, order: Tensor, class_token: Tensor, projection: Tensor
) -> dict[str, float]:
    """How far read-outs of a map of tokens are from invariant: ‖r(f(PZ)) − r(f(Z))‖ / ‖r(f(Z))‖.

    A class token, which stands before the others and is not permuted, max and mean over the tokens are invariant where
    f is equivariant; all tokens side by side, projected, are not.
    Source: "Visualizing equivariances in transformer neural networks" (addendum).

    Args:
        network: f, [B, N, C] → [B, N, C′] for any N.
        tokens: Z, [B, N, C].
        order: int64 [N].
        class_token: [C].
        projection: [N·C′, K], of the concatenated tokens.

    Returns:
        {"class token", "max", "mean", "concatenation": relative change}.

    Raises:
        ValueError: no order of the tokens.
    """
    check_order(order, tokens.shape[1])
    first = class_token.expand(len(tokens), 1, -1)

    def read(tokens: Tensor) -> dict[str, Tensor]:
        output = network(tokens.clone()).clone()  # it may work in place
        return {
            "class token": network(torch.cat((first, tokens), dim=1))[:, 0],
            "max": output.amax(1),
            "mean": output.mean(1),
            "concatenation": output.flatten(1) @ projection,
        }

    with torch.no_grad(), evaluating(network):
        expected, moved = read(tokens), read(tokens[:, order])
    return {name: relative_error(moved[name], expected[name]) for name in expected}
