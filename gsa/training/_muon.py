"""Momentum made orthogonal, for matrices; AdamW for all else."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gsa.training._parameters import sort_parameters

__all__ = ["Muon", "muon"]


def muon(
    network: nn.Module, lr: float = 0.01, weight_decay: float = 0.01, matrix_lr: float = 2.0, momentum: float = 0.95
) -> "Muon":
    """The optimizer of a network: Muon for its matrices, AdamW for the rest, and no decay of positions.

    Args:
        network: its parameters are told apart by `sort_parameters`.
        lr: learning rate of AdamW.
        weight_decay: of matrices and of the rest, decoupled: a step shrinks weights by lr·weight_decay of their group.
        matrix_lr: learning rate of the matrices, as a multiple of `lr`.
        momentum: of the matrices, in [0, 1).

    Raises:
        ValueError: a number out of its range.
    """
    for name, value in {"lr": lr, "weight_decay": weight_decay, "matrix_lr": matrix_lr}.items():
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must not be negative, but got {value}")
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum must be in [0, 1), but got {momentum}")
    kinds = sort_parameters(network)
    groups: list[dict[str, Any]] = [
        {"params": kinds["matrices"], "lr": lr * matrix_lr, "momentum": momentum},
        {"params": kinds["rest"]},
        {"params": kinds["positions"], "weight_decay": 0.0},
    ]
    return Muon([group for group in groups if group["params"]], lr=lr, weight_decay=weight_decay)


class Muon(Optimizer):
    """Groups with a momentum are matrices, whose step is orthogonal; the others take AdamW's.

        M ← μM + G,   W ← (1 − ηλ) W − η √max(1, rows/columns) orthogonal(G + μM)

    orthogonal(X) brings all singular values near 1 by five Newton–Schulz steps. Filters are matrices of their output
    channels against all else. `torch.optim.Muon` takes nothing but matrices, in half precision; this one is one
    optimizer for a whole network, as schedules, checkpoints and Lightning expect.

    Source: Jordan et al. 2024 (Muon); Loshchilov & Hutter 2019 (AdamW).

    Args:
        groups: dictionaries with "params", and "momentum" where they are matrices.
        lr, weight_decay: where a group has none of its own.
        betas, eps: of AdamW.
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        lr: float = 0.01,
        weight_decay: float = 0.01,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        defaults = {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps, "momentum": None}
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            update = _adamw if group["momentum"] is None else _muon
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    update(parameter, parameter.grad, self.state[parameter], group)
        return loss


def _muon(parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    if not state:
        state["momentum"] = torch.zeros_like(parameter)
    velocity = state["momentum"].mul_(group["momentum"]).add_(grad)
    step = orthogonal(grad.add(velocity, alpha=group["momentum"]).flatten(1))
    scale = math.sqrt(max(1, step.shape[0] / step.shape[1]))
    parameter.sub_(step.view_as(parameter), alpha=group["lr"] * scale)


def _adamw(parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    if not state:
        state.update(step=torch.zeros(()), mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter))
    state["step"] += 1
    first, second = group["betas"]
    mean = state["mean"].lerp_(grad, 1 - first)
    square = state["square"].lerp_(grad.square(), 1 - second)
    steps = state["step"].item()
    deviation = (square / (1 - second**steps)).sqrt_().add_(group["eps"])
    parameter.addcdiv_(mean, deviation, value=-group["lr"] / (1 - first**steps))


def orthogonal(matrix: Tensor, steps: int = 5) -> Tensor:
    """The nearest matrix with singular values near 1, by Newton–Schulz steps: [n, m] → [n, m].

    X ← aX + (bXXᵀ + c(XXᵀ)²)X with coefficients that bring small singular values up fast and leave all in about
    [0.7, 1.2].
    """
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.T if tall else x
