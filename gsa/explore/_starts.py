"""Hidden units that start equal, at random, or equal under dropout: losses, and how many units there are."""

from typing import Any

import torch
from torch import Tensor, nn

from gsa.explore._packed import packed
from gsa.explore._reordered import trained
from gsa.symmetry.statements import constant_start

__all__ = ["different_units", "starts"]

_OPTIMIZERS = {
    "SGD": lambda weights: torch.optim.SGD(weights, 0.1),
    "Adam": lambda weights: torch.optim.Adam(weights, 0.05),
}
_UNITS, _INPUTS = 8, 2
_EQUAL = 1e-6  # relative, of units that count as one


def starts(steps: int = 160, every: int = 4) -> dict[str, Any]:
    """An MLP that learns y = x₁x₂ from three starts: constant, random, and constant with dropout; in float64.

    Args:
        steps: of training on all points, by SGD and by Adam.
        every: of them are kept, beginning with the start.

    Returns:
        Plain values for JSON: "starts", "optimizers" and "steps" are the axes; "loss" [optimizers, starts, kept],
        "units" [optimizers, starts, kept, h, d + 2], each with its incoming weights, bias and outgoing weight, packed;
        "different" [optimizers][starts][kept], how many units there are.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        plain = nn.Sequential(nn.Linear(_INPUTS, _UNITS), nn.Tanh(), nn.Dropout(0), nn.Linear(_UNITS, 1)).double()
        dropping = nn.Sequential(plain[0], plain[1], nn.Dropout(0.3), plain[3])
        networks = {
            "constant": constant_start(plain, 0.25),
            "random": plain,
            "constant, with dropout": constant_start(dropping, 0.25),
        }
        side = torch.linspace(-2, 2, 7, dtype=torch.float64)
        x = torch.cartesian_prod(side, side)
        target = x.prod(1, keepdim=True)
        found = [
            [trained(network.train(), x, target, make, steps, _units)[1:] for network in networks.values()]
            for make in _OPTIMIZERS.values()
        ]
    losses = torch.stack([torch.stack([losses[::every] for losses, _ in row]) for row in found])
    units = torch.stack([torch.stack([torch.stack(kept[::every]) for _, kept in row]) for row in found])
    return {
        "starts": list(networks),
        "optimizers": list(_OPTIMIZERS),
        "steps": list(range(0, steps + 1, every)),
        "loss": packed(losses),
        "units": packed(units.float()),
        "different": [[[different_units(one) for one in start] for start in row] for row in units],
    }


def different_units(units: Tensor) -> int:
    """How many of the rows are different, to rounding."""
    distances = torch.cdist(units, units) / units.norm(dim=1).max()
    return int((distances < _EQUAL).long().argmax(1).unique().numel())


def _units(network: nn.Module) -> Tensor:
    """What enters and what leaves each hidden unit: [h, d + 2]."""
    first, last = network.get_submodule("0"), network.get_submodule("3")
    assert isinstance(first, nn.Linear) and isinstance(last, nn.Linear)
    return torch.cat((first.weight, first.bias[:, None], last.weight.T), dim=1).detach().clone()
