"""Hidden units in another order: an MLP with W¹P, b¹P, PᵀW² is the same function, and stays it in training."""

import itertools
import math
from collections.abc import Iterator

import numpy
import torch
from torch import Tensor, nn

from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._norm import relative_error
from gsa.symmetry._orders import check_order
from gsa.symmetry.statements._gradients import flat, gradients
from gsa.symmetry.statements._orders import reordered, twin

__all__ = [
    "equivalent_networks",
    "hidden_orders",
    "hidden_unit_errors",
    "linears",
    "output_gradient_errors",
    "twins",
]

_MOST_TWINS = 5040


def linears(mlp: nn.Sequential) -> dict[str, nn.Linear]:
    """The linear layers of an MLP by name, in order.

    Raises:
        ValueError: fewer than two, parameters of anything else, or weights that two layers share.
    """
    found = {name: layer for name, layer in mlp.named_children() if isinstance(layer, nn.Linear)}
    others = [name for name, layer in mlp.named_children() if name not in found and [*layer.parameters()]]
    if len(found) < 2 or others:
        raise ValueError(
            f"an MLP is linear layers, two or more, with functions of each entry between them, but got "
            f"{', '.join(type(layer).__name__ for layer in mlp)}"
        )
    weights = [layer.weight for layer in mlp if isinstance(layer, nn.Linear)]
    if len({*weights}) < len(weights):
        raise ValueError("the linear layers of an MLP must have weights of their own, but some share them")
    return found


def hidden_orders(mlp: nn.Sequential, order: Tensor, layer: int = 0) -> dict[str, tuple[Tensor | None, ...]]:
    """How the weights of an MLP have to be permuted for hidden units in another order: W¹P, b¹P, PᵀW².

    Args:
        mlp: linear layers with functions of each entry between them.
        order: int64 [h], of the hidden units; `nn.Linear` keeps W transposed, so they are rows of the layer before
            them and columns of the layer behind. The bias behind belongs to other units and stays.
        layer: which hidden layer, from 0.

    Raises:
        ValueError: no MLP, no such layer, no order of its units.
    """
    before, behind = _around(mlp, layer)
    check_order(order, linears(mlp)[before].out_features)
    orders: dict[str, tuple[Tensor | None, ...]] = {f"{before}.weight": (order, None), f"{before}.bias": (order,)}
    orders[f"{behind}.weight"] = (None, order)
    known = dict(mlp.named_parameters())
    return {name: axes for name, axes in orders.items() if name in known}


def hidden_unit_errors(
    mlp: nn.Sequential, x: Tensor, target: Tensor, order: Tensor, layer: int = 0, rate: float = 0.01
) -> dict[str, float]:
    """An MLP and its twin with permuted hidden units: forward, loss, gradients, and a step of gradient descent.

        H_P = HP,  O_P = O,  ℒ_P = ℒ,  ∂ℒ/∂W¹_P = ∂ℒ/∂W¹ P,  ∂ℒ/∂b¹_P = ∂ℒ/∂b¹ P,  ∂ℒ/∂W²_P = Pᵀ ∂ℒ/∂W²

    with ℒ = ½‖O − Y‖²; after the step the weights are permuted copies again. ("Gradients are invariant" means this:
    they are permuted as the weights are.) Source: "Numerical Stability and Initialization" (permuting the weights).

    Args:
        mlp: linear layers with functions of each entry between them; put in eval mode.
        x, target: X [n, d] and Y [n, q].
        order, layer: as in `hidden_orders`.
        rate: α of the step.

    Returns:
        {"hidden", "output", "loss", "gradients", "stepped weights", "stepped output": relative error}.
    """
    orders = hidden_orders(mlp, order, layer)
    other = twin(mlp, orders)
    end = list(mlp._modules).index(_around(mlp, layer)[1])
    with evaluating(mlp), evaluating(other):
        output, moved = mlp(x), other(x)
        losses = [0.5 * (o - target).square().sum() for o in (output, moved)]
        plain, found = (gradients(net, loss) for net, loss in zip((mlp, other), losses, strict=True))
        expected = reordered(plain, orders)
        stepped = {name: p.detach() - rate * plain[name] for name, p in mlp.named_parameters()}
        stepped_twin = {name: p.detach() - rate * found[name] for name, p in other.named_parameters()}
        with torch.no_grad():
            hidden = relative_error(other[:end](x), mlp[:end](x)[..., order])
            later = [torch.func.functional_call(mlp, weights, (x,)) for weights in (stepped, stepped_twin)]
    return {
        "hidden": hidden,
        "output": relative_error(moved, output),
        "loss": relative_error(losses[1], losses[0]),
        "gradients": relative_error(flat(found.values()), flat(expected.values())),
        "stepped weights": relative_error(flat(stepped_twin.values()), flat(reordered(stepped, orders).values())),
        "stepped output": relative_error(later[1], later[0]),
    }


def output_gradient_errors(mlp: nn.Sequential, x: Tensor, target: Tensor) -> dict[str, float]:
    """The last layer's gradients written out: ∂ℒ/∂O = O − Y, ∂ℒ/∂W² = Hᵀ(O − Y), ∂ℒ/∂b² = Σ_n (O − Y).

    With ℒ = ½‖O − Y‖². Source: "Numerical Stability and Initialization" (backward propagation).

    Args:
        mlp, x, target: as in `hidden_unit_errors`; the last layer has a bias.

    Returns:
        {"output", "weight", "bias": relative error against autograd}.

    Raises:
        ValueError: a last layer without a bias, or that is frozen.
    """
    last = list(linears(mlp).values())[-1]
    if last.bias is None or not (last.weight.requires_grad and last.bias.requires_grad):
        raise ValueError(f"the last layer must have a weight and a bias that are trained, but got {last}")
    with evaluating(mlp):
        hidden = mlp[:-1](x)
        output = last(hidden)
        loss = 0.5 * (output - target).square().sum()
        of_output, of_weight, of_bias = torch.autograd.grad(loss, [output, last.weight, last.bias])
    difference = (output - target).detach()
    return {
        "output": relative_error(of_output, difference),
        "weight": relative_error(of_weight.T, hidden.detach().T @ difference),
        "bias": relative_error(of_bias, difference.sum(0)),
    }


def equivalent_networks(mlp: nn.Sequential, x: Tensor, layer: int = 0) -> dict[str, float]:
    """All h! orders of h hidden units: one function and one norm of the weights, though the weights are others.

    So minima are not unique, weights not identifiable, and weight decay, which sees only the norm, prefers none.
    Source: "Numerical Stability and Initialization" (over-parametrization).

    Args:
        mlp, layer: as in `hidden_orders`, with at most 7 units in the layer.
        x: [n, d].

    Returns:
        {"output", "norm": the largest relative error; "distance": the smallest relative distance of a twin's weights
        from the network's, which is not small; "twins": h!}.

    Raises:
        ValueError: no such layer, or more than 7 hidden units.
    """
    outputs, norms, distances, plain = [], [], [], flat(mlp.parameters())
    with torch.no_grad(), evaluating(mlp):
        output = mlp(x)
        for other in twins(mlp, layer):
            weights = flat(other.parameters())
            outputs.append(relative_error(other(x), output))
            norms.append(relative_error(weights.norm(), plain.norm()))
            distances.append(relative_error(weights, plain))
    errors = {"output": float(numpy.max(outputs)), "norm": float(numpy.max(norms))}  # NaN where one is
    return errors | {"distance": min(distances[1:], default=0.0), "twins": float(len(outputs))}


def twins(mlp: nn.Sequential, layer: int) -> Iterator[nn.Sequential]:
    """An MLP with the units of a hidden layer in every order, the order that they have first."""
    units = linears(mlp)[_around(mlp, layer)[0]].out_features
    if math.factorial(units) > _MOST_TWINS:
        raise ValueError(f"all orders are tried: the layer must have at most 7 hidden units, but has {units}")
    for order in itertools.permutations(range(units)):
        yield twin(mlp, hidden_orders(mlp, torch.tensor(order), layer))


def _around(mlp: nn.Sequential, layer: int) -> tuple[str, str]:
    """Names of the linear layers before and behind a hidden layer."""
    names = list(linears(mlp))
    if not 0 <= layer < len(names) - 1:
        raise ValueError(f"the hidden layers are numbered from 0 to {len(names) - 2}, but got {layer}")
    return names[layer], names[layer + 1]
