"""Equivalent minima: as many as hidden units have orders, what lies between them, what they waste."""

import torch
from torch import Tensor, nn

from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._constant_start import constant_start
from gsa.symmetry.statements._examples._example import Figures, example
from gsa.symmetry.statements._examples._networks import Sums, another_order, mlp
from gsa.symmetry.statements._examples._sources import INITIALIZATION
from gsa.symmetry.statements._hidden_units import (
    equivalent_networks,
    hidden_orders,
)
from gsa.symmetry.statements._minima import barrier, closest_twin, parameter_rank
from gsa.symmetry.statements._orders import twin

__all__ = ["EXAMPLES"]


@example(INITIALIZATION, equivalent_networks)
def all_orders() -> Figures:
    """h hidden units have h! sets of weights for one function, all of one norm, so that weight decay prefers none."""
    x = torch.randn(9, 3)
    found = equivalent_networks(mlp(nn.Tanh()), x)
    return Figures(
        {"output of 24 twins": found["output"], "norm of their weights": found["norm"]},
        {"weights": found["distance"], "output, cumulative sum for σ": equivalent_networks(mlp(Sums()), x)["output"]},
    )


@example(INITIALIZATION, parameter_rank, constant_start)
def redundancy() -> Figures:
    """That units can change places wastes no parameter: the symmetry is discrete. Equal and rectified units do."""

    def wasted(network: nn.Sequential) -> float:
        found = parameter_rank(network, x)
        return float(found["parameters"] - found["rank"])

    x, network = torch.randn(100, 3), mlp(nn.Tanh())
    return Figures(
        {"parameters wasted": wasted(network)},
        {"by equal units": wasted(constant_start(network, 0.3)), "by rectified units": wasted(mlp(nn.ReLU()))},
    )


@example(INITIALIZATION, barrier, closest_twin, hidden_orders, twin)
def between_twins() -> Figures:
    """Equivalent minima have barriers between them; there are none once units are put back in their places."""
    network, x = mlp(nn.Tanh()), torch.randn(20, 3)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=2)
    target = network(x).detach()  # of which the network is a minimum

    def loss(other: nn.Module) -> Tensor:
        return (other(x) - target).square().mean()

    other = twin(network, hidden_orders(network, another_order(4)))
    again = closest_twin(network, other)
    weights = (torch.nn.utils.parameters_to_vector(n.parameters()).detach() for n in (again, network))
    return Figures(
        {
            "loss of a twin": loss(other).item(),
            "barrier to it, put back": barrier(network, again, loss),
            "its weights, put back": relative_error(*weights),
        },
        {"barrier to the twin": barrier(network, other, loss)},
    )


@example(INITIALIZATION, hidden_orders, twin)
def importance_of_a_unit() -> Figures:
    """The importance of a unit is no property of its place: a twin has it elsewhere."""
    network, x, order = mlp(nn.Sigmoid()), torch.randn(9, 3), another_order(4)
    other = twin(network, hidden_orders(network, order))

    def without(network: nn.Sequential, unit: int) -> Tensor:
        silenced = twin(network, {})
        silenced.get_parameter("2.weight").data[:, unit] = 0
        return silenced(x)

    expected = without(network, int(order[0]))
    return Figures(
        {"without unit 1 of the twin": relative_error(without(other, 0), expected)},
        {"without unit 1 of the network": relative_error(without(network, 0), expected)},
    )


EXAMPLES = (all_orders, redundancy, between_twins, importance_of_a_unit)
