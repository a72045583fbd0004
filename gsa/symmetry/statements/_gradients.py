"""Gradients of a network's weights, by name and side by side."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

__all__ = ["Optimizer", "flat", "gradients"]

Optimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]  # made of the weights


def gradients(network: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """Of a loss by every parameter of a network; zeros where it does not depend on one."""
    names, parameters = zip(*network.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters, materialize_grads=True), strict=True))


def flat(tensors: Iterable[Tensor]) -> Tensor:
    """Tensors side by side, [their entries]."""
    return torch.cat([t.detach().flatten() for t in tensors])
