"""What the symmetry of hidden units makes of a network's minima: how many, what lies between them, what they waste."""

import copy
from collections.abc import Callable

import numpy
import torch
from torch import Tensor, nn

from gsa.symmetry._evaluating import evaluating
from gsa.symmetry.statements._gradients import flat
from gsa.symmetry.statements._hidden_units import twins

__all__ = ["barrier", "closest_twin", "parameter_rank"]


def barrier(one: nn.Module, other: nn.Module, loss: Callable[[nn.Module], Tensor], places: int = 11) -> float:
    """How far the loss rises on the straight way from the weights of a network to those of another.

        max_t ℒ((1 − t) w + t w′) − max(ℒ(w), ℒ(w′)),   0 ≤ t ≤ 1

    Between a network and a twin of it, whose hidden units have changed places, it rises, though both are as good: the
    equivalent minima make the landscape a complicated one. Source: "Numerical Stability and Initialization".

    Args:
        one, other: with parameters of the same names and shapes.
        loss: ℒ of a network.
        places: t, evenly from 0 to 1, three at least.
    """
    ends, between = (dict(network.named_parameters()) for network in (one, other)), copy.deepcopy(one)
    first, last = ends
    losses = []
    with torch.no_grad(), evaluating(between):
        for step in range(places):
            for name, weight in between.named_parameters():
                weight.copy_(first[name].lerp(last[name], step / (places - 1)))
            losses.append(float(loss(between)))
    return float(numpy.max(losses)) - max(losses[0], losses[-1])  # NaN where one is


def closest_twin(mlp: nn.Sequential, other: nn.Sequential, layer: int = 0) -> nn.Sequential:
    """Of all twins of another MLP, with hidden units in other orders, the one whose weights are nearest to an MLP's.

    An algorithm that is aware of the symmetry can put units back in their places before weights are compared, or
    averaged. Source: "Numerical Stability and Initialization" ("algorithms that are aware of this symmetry").

    Args:
        mlp, other: linear layers with functions of each entry between them, of the same sizes.
        layer: which hidden layer, from 0, of at most 7 units; other layers stay.

    Raises:
        ValueError: no such layer, or more than 7 hidden units.
    """
    weights = flat(mlp.parameters())
    return min(twins(other, layer), key=lambda found: float((flat(found.parameters()) - weights).norm()))


def parameter_rank(network: nn.Module, x: Tensor) -> dict[str, int]:
    """In how many directions the weights of a network change its function: the rank of ∂O/∂w at pictures or samples.

    That hidden units can change places makes no parameter redundant: the symmetry is discrete, and near the weights
    there is no other set with the same function. Units that are all alike, as after a constant start, do waste
    parameters, and so do rectified units, whose scale can be moved from one layer to the next.
    Source: "Numerical Stability and Initialization" ("redundancy … more parameters than we actually need").

    Args:
        network: at the weights to be judged; in eval mode.
        x: [n, d], float64, as the network is, with as many outputs in all as it has parameters, or more.

    Returns:
        {"rank", "parameters"}.

    Raises:
        ValueError: fewer outputs, of which a rank would tell nothing; another dtype, whose rounding hides a rank.
    """
    parameters = {name: p.detach() for name, p in network.named_parameters()}
    if dtypes := {of.dtype for of in (x, *parameters.values())} - {torch.float64}:
        raise ValueError(f"a rank is told in float64, but got {', '.join(sorted(map(str, dtypes)))}")
    with evaluating(network):
        found = torch.func.jacrev(lambda weights: torch.func.functional_call(network, weights, (x,)))(parameters)
    jacobian = torch.cat([of_one.reshape(-1, parameters[name].numel()) for name, of_one in found.items()], dim=1)
    if jacobian.shape[0] < jacobian.shape[1]:
        raise ValueError(
            f"expected samples with at least {jacobian.shape[1]} outputs in all, one a parameter, but got "
            f"{jacobian.shape[0]}"
        )
    values = torch.linalg.svdvals(jacobian)
    return {"rank": int((values > 1e-10 * values[0]).sum()), "parameters": jacobian.shape[1]}
