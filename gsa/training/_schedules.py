"""Schedules of the learning rate, step by step."""

import inspect
from collections.abc import Callable, Sequence

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import (
    ConstantLR,
    CosineAnnealingLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    ReduceLROnPlateau,
    SequentialLR,
)

__all__ = ["constant", "schedule", "steps", "warmup_cosine"]

_LENGTH = ("steps", "total_steps", "T_max", "total_iters")  # what schedules call the number of steps


def schedule(make: Callable[..., LRScheduler], optimizer: Optimizer, steps: int | None) -> LRScheduler:
    """A schedule over a whole run: one of these, one of torch's, or one's own.

    Args:
        make: called with the optimizer, and with the number of steps if it takes that and has no other yet, as `steps`,
            `total_steps`, `T_max` or `total_iters`.
        optimizer: with its full rate.
        steps: of the whole run, None if nobody knows.

    Raises:
        ValueError: a schedule that must be shown a metric, or one that takes a length, which is not known.
    """
    told = getattr(make, "keywords", {})
    length = [name for name in _LENGTH if name in inspect.signature(make).parameters and name not in told]
    if length and steps is None:
        raise ValueError(
            f"the schedule of the learning rate needs the length of the run, its {length[0]}: expected max_epochs or "
            "max_steps of the trainer, or gsa.training.constant, but got neither"
        )
    made = make(optimizer, **{name: steps for name in length[:1]})
    if isinstance(made, ReduceLROnPlateau):
        raise ValueError(
            "a schedule is advanced at every step and shown no metric, but got ReduceLROnPlateau; expected one such as "
            "gsa.training.warmup_cosine or torch.optim.lr_scheduler.OneCycleLR"
        )
    return made


def warmup_cosine(optimizer: Optimizer, steps: int, warmup: float = 0.15) -> LRScheduler:
    """A linear rise from a hundredth of the rate over a share of the steps, then a cosine to zero, where it stays.

    Args:
        optimizer: with its full rate.
        steps: of the whole run.
        warmup: share of the steps, in [0, 1).

    Raises:
        ValueError: a share out of its range.
    """
    if not 0 <= warmup < 1:
        raise ValueError(f"warmup must be a share of all steps in [0, 1), but got {warmup}")
    rising = max(round(warmup * steps), 1) if warmup else 0
    falling = _CosineToZero(optimizer, max(steps - rising, 1))
    if not rising:
        return falling
    return SequentialLR(optimizer, [LinearLR(optimizer, 0.01, total_iters=rising), falling], milestones=[rising])


class _CosineToZero(CosineAnnealingLR):
    """Torch's goes up again behind its end, where a run that is resumed for longer goes on."""

    def get_lr(self) -> list[float | Tensor]:
        return [0.0 for _ in self.base_lrs] if self.last_epoch > self.T_max else super().get_lr()


def constant(optimizer: Optimizer) -> LRScheduler:
    """The same rate all along."""
    return ConstantLR(optimizer, factor=1.0, total_iters=0)


def steps(optimizer: Optimizer, steps: int, at: Sequence[float] = (0.5, 0.75), factor: float = 0.1) -> LRScheduler:
    """The rate times a factor at some points of the run.

    Args:
        optimizer: with its full rate.
        steps: of the whole run.
        at: shares of the steps, in (0, 1).
        factor: positive.

    Raises:
        ValueError: a share or a factor out of its range.
    """
    if not all(0 < share < 1 for share in at):
        raise ValueError(f"at must hold shares of all steps in (0, 1), but got {list(at)}")
    if factor <= 0:
        raise ValueError(f"factor must be positive, but got {factor}")
    return MultiStepLR(optimizer, [round(share * steps) for share in at], factor)
