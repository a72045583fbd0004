"""Hidden units that change places, and equal ones that stay equal."""

import torch
from torch import Tensor, nn

from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._constant_start import constant_start, equal_units_errors, unit_spread
from gsa.symmetry.statements._examples._example import Figures, example
from gsa.symmetry.statements._examples._networks import Squashed, another_order, mlp
from gsa.symmetry.statements._hidden_units import (
    equivalent_networks,
    hidden_orders,
    hidden_unit_errors,
    output_gradient_errors,
)
from gsa.symmetry.statements._matrices import invariance_error
from gsa.symmetry.statements._orders import twin

__all__ = ["EXAMPLES"]

_SOURCE = (
    "Numerical Stability and Initialization (permutation symmetry of neural networks, after Zhang et al., "
    "Dive into Deep Learning)"
)


@example(_SOURCE, invariance_error)
def symmetric_functions() -> Figures:
    """A function may be symmetric under permutations of its variables, as a sum is."""
    x, order = torch.rand(6, 2), another_order(6)
    weights = torch.arange(1.0, 7)[:, None]
    return Figures(
        {
            "sum": invariance_error(lambda x: x.sum(0), x, order),
            "largest": invariance_error(lambda x: x.amax(0), x, order),
            "product": invariance_error(lambda x: x.prod(0), x, order),
        },
        {"weighted sum": invariance_error(lambda x: (weights * x).sum(0), x, order)},
    )


@example(_SOURCE, hidden_unit_errors, hidden_orders, twin)
def hidden_units() -> Figures:
    """W¹P, b¹P, PᵀW² is the same function; loss, gradients and a step of gradient descent are permuted with it."""
    x, target, order = torch.randn(9, 3), torch.randn(9, 2), another_order(4)
    network = mlp(nn.Sigmoid())
    whole = hidden_orders(network, order)
    first = twin(network, {"0.weight": (order, None)})
    without_bias = twin(network, {name: axes for name, axes in whole.items() if name != "0.bias"})
    return Figures(
        hidden_unit_errors(network, x, target, order),
        {
            "W¹ alone": relative_error(first(x), network(x)),
            "b¹ left": relative_error(without_bias(x), network(x)),
            "cumulative sum for σ": hidden_unit_errors(mlp(_Sums()), x, target, order)["output"],
        },
    )


@example(_SOURCE, output_gradient_errors)
def last_layer_gradients() -> Figures:
    """The last layer's gradients are ∂ℒ/∂O = O − Y, ∂ℒ/∂W² = Hᵀ(O − Y), ∂ℒ/∂b² = Σ(O − Y), for ℒ = ½‖O − Y‖²."""
    x, target = torch.randn(9, 3), torch.randn(9, 2)
    last = Squashed(4, 2)
    nn.init.normal_(last.weight)
    squashed = output_gradient_errors(nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), last), x, target)
    return Figures(
        output_gradient_errors(mlp(nn.Sigmoid()), x, target),
        {"weight, with tanh at the end": squashed["weight"]},
    )


@example(_SOURCE, equivalent_networks)
def all_orders() -> Figures:
    """h hidden units have h! sets of weights for one function, all of one norm, so that weight decay prefers none."""
    x = torch.randn(9, 3)
    found = equivalent_networks(mlp(nn.Tanh()), x)
    return Figures(
        {"output of 24 twins": found["output"], "norm of their weights": found["norm"]},
        {"weights": found["distance"], "output, cumulative sum for σ": equivalent_networks(mlp(_Sums()), x)["output"]},
    )


@example(_SOURCE, hidden_orders, twin)
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


@example(_SOURCE, hidden_orders, twin)
def twins_under_minibatches() -> Figures:
    """Under minibatches, too, a network with permuted hidden units stays a twin."""
    network, x, target = mlp(nn.Sigmoid()), torch.randn(9, 3), torch.randn(9, 2)
    orders, batches, others = hidden_orders(network, another_order(4)), *torch.randint(9, (2, 10, 3))

    def trained(network: nn.Sequential, batches: Tensor) -> nn.Sequential:
        network = twin(network, {})
        optimizer = torch.optim.SGD(network.parameters(), 0.1)
        for batch in batches:
            optimizer.zero_grad()
            (network(x[batch]) - target[batch]).square().sum().backward()
            optimizer.step()
        return network

    def off(one: nn.Sequential, other: nn.Sequential) -> float:
        return relative_error(*(torch.nn.utils.parameters_to_vector(n.parameters()).detach() for n in (one, other)))

    expected, start = twin(trained(network, batches), orders), twin(network, orders)
    return Figures(
        {"weights after 10 steps": off(trained(start, batches), expected)},
        {"weights moved by training": off(start, expected), "other batches": off(trained(start, others), expected)},
    )


@example(_SOURCE, constant_start, equal_units_errors, unit_spread)
def equal_hidden_units() -> Figures:
    """From a constant start all hidden units stay one; random weights or dropout tell them apart."""
    x, target = torch.randn(9, 3), torch.randn(9, 2)
    network = mlp(nn.Tanh())
    constant = equal_units_errors(constant_start(network, 0.3), x, target)
    dropped = equal_units_errors(constant_start(mlp(nn.Tanh(), nn.Dropout(0.3)), 0.3), x, target)
    return Figures(
        {
            "gradients": constant["gradients"],
            "units after 20 steps": constant["units"],
            "one unit in their place": constant["one unit"],
        },
        {
            "weights moved by training": constant["moved"],
            "units, random start": unit_spread(network),
            "gradients, dropout": dropped["gradients"],
        },
    )


@example(_SOURCE, constant_start, equal_units_errors)
def equal_incoming_weights() -> Figures:
    """Units with the same incoming weights get the same gradients if their outgoing weights are the same, too."""
    x, target, network = torch.randn(9, 3), torch.randn(9, 2), constant_start(mlp(nn.Sigmoid()))
    both = equal_units_errors(network, x, target, steps=1)["gradients"]
    nn.init.normal_(network.get_parameter("2.weight"))
    incoming = equal_units_errors(network, x, target, steps=1)["gradients"]
    return Figures({"both the same": both}, {"outgoing weights at random": incoming})


@example(_SOURCE, constant_start, equal_units_errors)
def matrix_of_ones() -> Figures:
    """From a constant start ∂ℒ/∂W¹ is the same for every unit, and c′ times ones where all inputs are alike."""
    network, target = constant_start(mlp(nn.Sigmoid())), torch.randn(9, 2)
    alike = equal_units_errors(network, torch.randn(9, 1).expand(9, 3), target, steps=1)
    others = equal_units_errors(network, torch.randn(9, 3), target, steps=1)
    return Figures(
        {"entries, inputs alike": alike["entries"], "units, other inputs": others["gradients"]},
        {"entries, other inputs": others["entries"]},
    )


class _Sums(nn.Module):
    """No function of each entry."""

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(-1)


EXAMPLES = (
    symmetric_functions,
    hidden_units,
    last_layer_gradients,
    all_orders,
    importance_of_a_unit,
    twins_under_minibatches,
    equal_hidden_units,
    equal_incoming_weights,
    matrix_of_ones,
)
