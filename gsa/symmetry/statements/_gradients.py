"""Gradients of a network's weights, by name and side by side."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

__all__ = ["Optimizer", "flat", "gradients"]

Optimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]  # made of the weights


def gradients(network: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """Of a loss by every parameter of a network; zeros where it does not depend on one, or one is frozen.

    Raises:
        ValueError: a network all of whose parameters are frozen.
    """
    found = {name: torch.zeros_like(parameter) for name, parameter in network.named_parameters()}
    trained = {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}
    if not trained:
        raise ValueError(f"expected a parameter that is trained, but {type(network).__name__} has none")
    theirs = torch.autograd.grad(loss, list(trained.values()), materialize_grads=True)
    return found | dict(zip(trained, theirs, strict=True))


def flat(tensors: Iterable[Tensor]) -> Tensor:
    """Tensors side by side, [their entries]."""
    return torch.cat([t.detach().flatten() for t in tensors])
