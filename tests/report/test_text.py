"""The report in a few lines."""

import pytest

from gsa.report import summary

REPORT = {
    "model": "net", "group": None, "parameters": 7, "seed": 0, "data": {"name": "cells", "source": "mine"},
    "epochs": 12, "train_seconds": 1, "seconds_per_epoch": 0.1, "peak_memory_mb": 9, "val_accuracy": 0.5,
    "equivariance_error": {},
}  # fmt: skip


def told(right, count, **more):
    split = {"train": 9, "val": 9, "test": count}
    return summary(REPORT | {"split": split, "used": split, "test_accuracy": right / count} | more)


@pytest.mark.parametrize("right, count", [(8, 10), (10, 10), (0, 7), (390, 397)])
def test_few_pictures_are_told_with_what_chance_may_do(right, count):
    """Against SciPy."""
    expected = pytest.importorskip("scipy.stats").binomtest(right, count).proportion_ci(method="wilson")
    low, high = (f"{100 * end + 0.0:.1f}" for end in expected)
    assert f" %, 95 % interval {low} to {high} %\n" in told(right, count)


def test_of_many_pictures_and_of_validation_it_is_not():
    assert "interval" not in told(500, 1000) and told(9, 10).count("interval") == 1


def test_the_chosen_epoch_is_counted_from_one():
    assert "9 MB at most, weights of epoch 3 of 12\n" in told(9, 10, best_epoch=2)
    assert "weights of" not in told(9, 10, best_epoch=None) and "weights of" not in told(9, 10)


def test_one_epoch_is_one():
    assert "training     1 epoch, 1 s" in told(9, 10, epochs=1) and "training     12 epochs, 1 s" in told(9, 10)
