"""Hidden units that start equal."""

import torch
from torch import nn

from gsa.symmetry.statements._constant_start import constant_start, equal_units_errors, unit_spread
from gsa.symmetry.statements._examples._example import Figures, example
from gsa.symmetry.statements._examples._networks import mlp
from gsa.symmetry.statements._examples._sources import INITIALIZATION

__all__ = ["EXAMPLES"]


@example(INITIALIZATION, constant_start, equal_units_errors, unit_spread)
def equal_hidden_units() -> Figures:
    """From a constant start all hidden units stay one; random weights or dropout tell them apart."""
    x, target = torch.randn(9, 3), torch.randn(9, 2)
    network = mlp(nn.Tanh())
    constant = equal_units_errors(constant_start(network, 0.3), x, target)
    batches = equal_units_errors(constant_start(network, 0.3), x, target, batch=3)
    dropped = equal_units_errors(constant_start(mlp(nn.Tanh(), nn.Dropout(0.3)), 0.3), x, target)
    return Figures(
        {
            "gradients": constant["gradients"],
            "units after 20 steps": constant["units"],
            "after 20 minibatches": batches["units"],
            "one unit in their place": constant["one unit"],
        },
        {
            "weights moved by training": constant["moved"],
            "units, random start": unit_spread(network),
            "gradients, dropout": dropped["gradients"],
        },
    )


@example(INITIALIZATION, constant_start, equal_units_errors)
def equal_incoming_weights() -> Figures:
    """Units with the same incoming weights get the same gradients if their outgoing weights are the same, too."""
    x, target, network = torch.randn(9, 3), torch.randn(9, 2), constant_start(mlp(nn.Sigmoid()))
    both = equal_units_errors(network, x, target, steps=1)["gradients"]
    nn.init.normal_(network.get_parameter("2.weight"))
    incoming = equal_units_errors(network, x, target, steps=1)["gradients"]
    return Figures({"both the same": both}, {"outgoing weights at random": incoming})


@example(INITIALIZATION, constant_start, equal_units_errors)
def matrix_of_ones() -> Figures:
    """From a constant start ∂ℒ/∂W¹ is the same for every unit, and c′ times ones where all inputs are alike."""
    network, target = constant_start(mlp(nn.Sigmoid())), torch.randn(9, 2)
    alike = equal_units_errors(network, torch.randn(9, 1).expand(9, 3), target, steps=1)
    others = equal_units_errors(network, torch.randn(9, 3), target)
    return Figures(
        {"entries, inputs alike": alike["entries"], "units, other inputs": others["gradients"]},
        {"entries, other inputs": others["entries"], "entries of W¹ after 20 steps": others["trained entries"]},
    )


EXAMPLES = (equal_hidden_units, equal_incoming_weights, matrix_of_ones)
