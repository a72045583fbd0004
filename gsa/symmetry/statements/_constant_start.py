"""Hidden units that start equal stay equal: the layer has one unit for ever, unless dropout tells them apart."""

import copy
import itertools
from collections.abc import Mapping

import numpy
import torch
from torch import Tensor, nn

from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._gradients import Optimizer, flat
from gsa.symmetry.statements._hidden_units import linears

__all__ = ["constant_start", "equal_units_errors", "unit_spread"]


def constant_start(mlp: nn.Sequential, value: float = 0.5) -> nn.Sequential:
    """A copy of an MLP with `value` for every weight and bias."""
    copied = copy.deepcopy(mlp)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.fill_(value)
    return copied


def unit_spread(mlp: nn.Sequential) -> float:
    """How far the hidden units of an MLP are from being one and the same: 0 where they are.

    Of what enters a unit (weights and bias) and of what leaves it, the norm of the differences from the mean unit,
    relative to the norm of all; the largest over all hidden layers.
    """
    return _largest_spread(mlp, dict(mlp.named_parameters()))


def equal_units_errors(
    mlp: nn.Sequential,
    x: Tensor,
    target: Tensor,
    optimizer: Optimizer = lambda weights: torch.optim.SGD(weights, 0.01),
    steps: int = 20,
    batch: int | None = None,
) -> dict[str, float]:
    """Train a copy of an MLP by ½‖O − Y‖²/n, and see whether hidden units that start equal stay equal.

    From a constant start (`constant_start`) they do under SGD and Adam: their gradients are the same, and the network
    is one with a single unit in every hidden layer, whose outgoing weights are the sums. That "the gradient is c′ times
    a matrix of ones" is not so for more than one feature: it is the same for every unit, not for every input. Equal
    incoming weights alone do not do: units with other outgoing weights get other gradients. Dropout, active here where
    the network has it, gives units gradients of their own.
    Source: "Numerical Stability and Initialization", and Zhang et al. (Dive into Deep Learning), which it quotes.

    Args:
        mlp: linear layers with functions of each entry between them, at the weights to start from; it is not changed.
        x, target: X [n, d] and Y [n, q].
        optimizer: made of the network's parameters.
        steps: of training.
        batch: samples of a step, drawn at random; all when None. Units stay the same under minibatches as well.

    Returns:
        {"gradients": spread of the units' gradients in the first step; "entries": spread of all entries of ∂ℒ/∂W¹ then;
        "trained entries": of W¹ at the end, which is a matrix of one number only where all inputs are alike;
        "units": the largest `unit_spread` after a step; "one unit": relative error of the network with one unit in
        every hidden layer, at the end; "moved": relative change of the weights by training}.
    """
    trained = copy.deepcopy(mlp).train()
    before, updates = flat(trained.parameters()), optimizer(trained.parameters())
    errors, spreads = {}, []
    for step in range(steps):
        rows = torch.arange(len(x)) if batch is None else torch.randperm(len(x))[:batch]
        updates.zero_grad()
        (0.5 * (trained(x[rows]) - target[rows]).square().sum() / len(rows)).backward()
        if step == 0:
            gradients = {name: p.grad for name, p in trained.named_parameters() if p.grad is not None}
            errors["gradients"] = _largest_spread(trained, gradients)
            errors["entries"] = _spread(gradients[f"{next(iter(linears(trained)))}.weight"].flatten())
        updates.step()
        spreads.append(unit_spread(trained))
    with torch.no_grad(), evaluating(trained):
        output = trained(x)
        errors |= {"units": float(numpy.max(spreads)), "one unit": relative_error(_one_unit(trained, x), output)}
    errors["trained entries"] = _spread(next(iter(linears(trained).values())).weight.detach().flatten())
    return errors | {"moved": relative_error(flat(trained.parameters()), before)}


def _largest_spread(mlp: nn.Sequential, tensors: Mapping[str, Tensor]) -> float:
    """Of weights or gradients by name: the spread of what enters and of what leaves the units of every hidden layer."""
    spreads = []
    for layer, behind in itertools.pairwise(linears(mlp)):
        entering = tensors[f"{layer}.weight"].detach()
        if (bias := tensors.get(f"{layer}.bias")) is not None:
            entering = torch.cat((entering, bias.detach()[:, None]), dim=1)
        spreads += [_spread(entering), _spread(tensors[f"{behind}.weight"].detach().T)]
    return float(numpy.max(spreads))  # NaN where one is


def _spread(rows: Tensor) -> float:
    return relative_error(rows, rows.mean(0).expand_as(rows), rows.norm())


def _one_unit(mlp: nn.Sequential, x: Tensor) -> Tensor:
    """The network with the first unit of every hidden layer alone, and outgoing weights added up."""
    layers = list(linears(mlp).values())
    for module in mlp:
        if isinstance(module, nn.Linear):
            weight: Tensor = module.weight
            bias: Tensor | None = module.bias
            if module is not layers[0]:
                weight = weight.sum(1, keepdim=True)
            if module is not layers[-1]:
                weight, bias = weight[:1], None if bias is None else bias[:1]
            x = nn.functional.linear(x, weight, bias)
        else:
            x = module(x)
    return x
