"""Hidden units that change places: forward, backward and in training."""

import torch
from torch import Tensor, nn

from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._examples._example import Figures, example
from gsa.symmetry.statements._examples._networks import Squashed, Sums, another_order, mlp
from gsa.symmetry.statements._examples._sources import INITIALIZATION
from gsa.symmetry.statements._hidden_units import (
    hidden_orders,
    hidden_unit_errors,
    output_gradient_errors,
)
from gsa.symmetry.statements._matrices import invariance_error
from gsa.symmetry.statements._orders import twin

__all__ = ["EXAMPLES"]


@example(INITIALIZATION, invariance_error)
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


@example(INITIALIZATION, hidden_unit_errors, hidden_orders, twin)
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
            "cumulative sum for σ": hidden_unit_errors(mlp(Sums()), x, target, order)["output"],
        },
    )


@example(INITIALIZATION, output_gradient_errors)
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


@example(INITIALIZATION, hidden_orders, twin)
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


EXAMPLES = (symmetric_functions, hidden_units, last_layer_gradients, twins_under_minibatches)
