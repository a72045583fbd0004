"""Schedules of the learning rate, step by step."""

from torch.optim import Optimizer
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR

__all__ = ["constant", "warmup_cosine"]


def warmup_cosine(optimizer: Optimizer, steps: int, warmup: float = 0.1) -> LRScheduler:
    """A linear rise from a hundredth of the rate over a share of the steps, then a cosine to zero.

    Args:
        optimizer: with its full rate.
        steps: of the whole run.
        warmup: share of the steps, in [0, 1).

    Raises:
        ValueError: a share out of its range.
    """
    if not 0 <= warmup < 1:
        raise ValueError(f"warmup must be a share of all steps in [0, 1), but got {warmup}")
    rising = max(round(warmup * steps), 1)
    falling = CosineAnnealingLR(optimizer, max(steps - rising, 1))
    return SequentialLR(optimizer, [LinearLR(optimizer, 0.01, total_iters=rising), falling], milestones=[rising])


def constant(optimizer: Optimizer, steps: int) -> LRScheduler:
    """The same rate all along."""
    return ConstantLR(optimizer, factor=1.0, total_iters=0)
