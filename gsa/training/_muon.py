"""Momentum made orthogonal, for matrices; AdamW for all else."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from gsa.training._parameters import sort_parameters

__all__ = ["Muon", "leaves_steps_out", "muon"]


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
    _check_rates(lr=lr, weight_decay=weight_decay, matrix_lr=matrix_lr)
    _check_momentum(momentum)
    kinds = sort_parameters(network)
    groups: list[dict[str, Any]] = [
        {"params": kinds["matrices"], "lr": lr * matrix_lr, "momentum": momentum},
        {"params": kinds["rest"], "momentum": None},
        {"params": kinds["positions"], "momentum": None, "weight_decay": 0.0},
    ]
    return Muon([group for group in groups if group["params"]], lr=lr, weight_decay=weight_decay)


class Muon(Optimizer):
    """Groups with a momentum are matrices, whose step is orthogonal; the others take AdamW's.

        M ← μM + G,   W ← (1 − ηλ) W − η √max(1, rows/columns) orthogonal(G + μM)

    orthogonal(X) brings singular values near 1 by five Newton–Schulz steps, but for those below about 1e-2 ‖X‖. Filters
    are matrices of their output channels against all else. `torch.optim.Muon` takes nothing but matrices, in half
    precision; this one is one optimizer for a whole network, as schedules, checkpoints and Lightning expect.

    Source: Jordan et al. 2024 (Muon); Loshchilov & Hutter 2019 (AdamW).

    Args:
        groups: dictionaries with "params", and "momentum" where they are matrices; None, if any, where they are not.
        lr, weight_decay: where a group has none of its own.
        betas, eps: of AdamW.

    Attributes:
        found_inf: 1 on the device where `step` is to do nothing, else 0 or None; as in torch's fused optimizers, it
            need not be waited for.

    Raises:
        ValueError: a number out of its range; a group with a momentum of what is no matrix; none that says whether it
            is of matrices.
    """

    found_inf: Tensor | None = None

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        lr: float = 0.01,
        weight_decay: float = 0.01,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        groups = list(groups)
        if not any(isinstance(group, dict) and "momentum" in group for group in groups):
            raise ValueError(
                "groups of matrices must have a momentum, but none has: gsa.training.muon(network) tells parameters "
                "apart"
            )
        defaults = {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps, "momentum": None}
        super().__init__(groups, defaults)
        for group in self.param_groups:
            _check_rates(**{name: group[name] for name in ("lr", "weight_decay", "eps")})
            if group["momentum"] is not None:
                _check_momentum(group["momentum"])
                if shapes := [list(p.shape) for p in group["params"] if p.ndim < 2]:
                    raise ValueError(f"a group with a momentum is of matrices or filters, but has one of {shapes[0]}")

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            if parameters:
                update = _adamw if group["momentum"] is None else _muon
                update(parameters, [self.state[parameter] for parameter in parameters], group, self.found_inf)
        return loss


def _check_rates(**values: float) -> None:
    for name, value in values.items():
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be finite and not negative, but got {value}")


def _check_momentum(value: float) -> None:
    if not 0 <= value < 1:
        raise ValueError(f"momentum must be in [0, 1), but got {value}")


def leaves_steps_out(optimizer: Optimizer) -> bool:
    """Whether an optimizer does nothing in a step where its `found_inf` is 1.

    Of torch's, those that are fused still, whatever was loaded, but for a first step with momentum: leaving it out,
    SGD would go on from momenta that were never written. None on MPS, where torch's kernels before 2.13 pass over it.
    """
    groups, begun = optimizer.param_groups, bool(optimizer.state)
    if any(parameter.device.type == "mps" for group in groups for parameter in group["params"]):
        return False
    if isinstance(optimizer, Muon):
        return True
    fused = getattr(optimizer, "_step_supports_amp_scaling", False) and all(group["fused"] for group in groups)
    return fused and (begun or not any(group.get("momentum") for group in groups))


def _muon(parameters: list[Tensor], states: list[dict[str, Any]], group: dict[str, Any], skip: Tensor | None) -> None:
    """Matrices of one shape, laid flat, are made orthogonal together."""
    for parameter, state in zip(parameters, states, strict=True):
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
    grads, velocities = _gradients(parameters), [state["momentum"] for state in states]
    kept, shrunk = group["momentum"], 1 - group["lr"] * group["weight_decay"]
    if skip is not None:  # nothing is added, nothing is forgotten
        good = skip == 0
        grads = [grad.where(good, 0) for grad in grads]
        kept, shrunk = (_number(factor, parameters[0]).where(good, 1) for factor in (kept, shrunk))
    torch._foreach_mul_(velocities, kept)
    torch._foreach_add_(velocities, grads)
    torch._foreach_mul_(parameters, shrunk)
    steps = torch._foreach_add(grads, velocities, alpha=group["momentum"])
    if skip is not None:
        torch._foreach_mul_(steps, good)  # made orthogonal, nothing is nothing
    alike: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = {}
    for parameter, step in zip(parameters, steps, strict=True):
        rows, columns = len(step), step[0].numel()
        flat = step.reshape(rows, columns) if rows <= columns else step.reshape(rows, columns).T
        alike.setdefault((min(rows, columns), max(rows, columns)), []).append((parameter, flat))
    for pairs in alike.values():
        for (parameter, _), step in zip(pairs, orthogonal(torch.stack([flat for _, flat in pairs])), strict=True):
            rows, columns = len(parameter), parameter[0].numel()
            step = step if rows <= columns else step.T
            size = group["lr"] * math.sqrt(max(1, rows / columns))  # a tensor, where the rate is one
            parameter.sub_(step.reshape(parameter.shape) * size)


def _number(value: float | Tensor, like: Tensor) -> Tensor:
    """On the device, which need not be waited for; a rate is there already, where steps are recorded."""
    return value if isinstance(value, Tensor) else like.new_full((), value)


def _adamw(parameters: list[Tensor], states: list[dict[str, Any]], group: dict[str, Any], skip: Tensor | None) -> None:
    for parameter, state in zip(parameters, states, strict=True):
        if not state:
            state.update(step=torch.zeros(()), mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter))
        state["step"] = state["step"].to(parameter.device, torch.float32)  # as the fused kernels want it
    means, squares, steps = ([state[name] for state in states] for name in ("mean", "square", "step"))
    first, second = group["betas"]
    adamw(
        parameters, _gradients(parameters), means, squares, [], steps,
        fused=True, amsgrad=False, maximize=False, found_inf=skip,
        lr=group["lr"], beta1=first, beta2=second, weight_decay=group["weight_decay"], eps=group["eps"],
    )  # fmt: skip


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def orthogonal(matrices: Tensor, steps: int = 5) -> Tensor:
    """The nearest matrices with singular values near 1, by Newton–Schulz steps: [k, n, m] → [k, n, m], best n ≤ m.

    X ← aX + (bXXᵀ + c(XXᵀ)²)X with coefficients that bring small singular values up fast, 3.4 times a step, and leave
    those that have come up, from about 1e-2 of the norm, in about [0.7, 1.2].
    """
    x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    return x
