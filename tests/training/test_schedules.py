"""Learning rates over the steps of a run."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from gsa.training import constant, schedule, steps, warmup_cosine


def rates(make, count, **options):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=2.0, momentum=0.9)
    scheduler, found = schedule(partial(make, **options), optimizer, count), []
    for _ in range(count):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return [*found, optimizer.param_groups[0]["lr"]]


def test_a_cosine_stays_at_zero_where_a_run_goes_on():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=2.0)
    scheduler, found = warmup_cosine(optimizer, 6), []
    for _ in range(16):
        optimizer.step()
        scheduler.step()
        found.append(optimizer.param_groups[0]["lr"])
    assert max(found[:5]) > 1 and max(found[5:]) <= 1e-9


def test_a_warmup_rises_from_a_hundredth_and_a_cosine_falls_to_zero():
    found = rates(warmup_cosine, 20, warmup=0.2)
    assert found[:5] == pytest.approx([0.02, 0.515, 1.01, 1.505, 2.0])
    assert found[12] == pytest.approx(1.0) and found[20] == pytest.approx(0.0, abs=1e-9)
    assert found[4:] == sorted(found[4:], reverse=True)


def test_without_warmup_a_cosine_starts_at_the_whole_rate():
    found = rates(warmup_cosine, 10, warmup=0)
    assert found[0] == 2.0 and found[5] == pytest.approx(1.0) and found[10] == pytest.approx(0.0, abs=1e-9)


def test_steps_are_at_their_shares_and_a_constant_rate_stays():
    assert rates(steps, 8, at=(0.5, 0.75), factor=0.5) == pytest.approx([2.0] * 4 + [1.0] * 2 + [0.5] * 3)
    assert rates(constant, 3) == [2.0] * 4


def test_schedules_of_torch_are_over_the_whole_run_unless_they_are_told_otherwise():
    assert rates(lr_scheduler.CosineAnnealingLR, 4) == pytest.approx(rates(warmup_cosine, 4, warmup=0))
    assert rates(lr_scheduler.PolynomialLR, 4) == pytest.approx([2.0, 1.5, 1.0, 0.5, 0.0])
    assert rates(lr_scheduler.PolynomialLR, 4, total_iters=2) == pytest.approx([2.0, 1.0, 0.0, 0.0, 0.0])
    once = rates(lr_scheduler.OneCycleLR, 10, max_lr=5.0, div_factor=5.0, pct_start=0.2)
    assert once[0] == pytest.approx(1.0) and max(once) == pytest.approx(5.0) and once[9] < 1e-3


def test_schedules_that_have_no_length_are_not_given_one():
    """Their second argument is a factor, or a number of steps between two changes."""
    assert rates(lr_scheduler.ExponentialLR, 3, gamma=0.5) == pytest.approx([2.0, 1.0, 0.5, 0.25])
    assert rates(lr_scheduler.StepLR, 3, step_size=2) == pytest.approx([2.0, 2.0, 0.2, 0.2])
    with pytest.raises(TypeError, match="gamma"):
        rates(lr_scheduler.ExponentialLR, 3)


@pytest.mark.parametrize("make, options, message", [
    (lr_scheduler.ReduceLROnPlateau, {}, "shown no metric, but got ReduceLROnPlateau"),
    (warmup_cosine, {"warmup": 1.0}, "warmup must be a share"), (steps, {"at": (0.5, 1.0)}, "at must hold shares"),
    (steps, {"at": (0.0,)}, "at must hold shares"), (steps, {"factor": 0.0}, "factor must be positive"),
])  # fmt: skip
def test_shares_out_of_range_are_refused(make, options, message):
    with pytest.raises(ValueError, match=message):
        rates(make, 4, **options)
