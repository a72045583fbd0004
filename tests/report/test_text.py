"""The report in a few lines."""

from gsa.report import share_interval, summary

REPORT = {
    "model": "net", "group": None, "parameters": 7, "seed": 0, "data": {"name": "cells", "source": "mine"},
    "epochs": 12, "train_seconds": 1, "seconds_per_epoch": 0.1, "peak_memory_mb": 9, "val_accuracy": 0.5,
    "equivariance_error": {}, "test_groups": None, "test_auroc_interval": None, "confusion": None,
    "test_balanced_accuracy": 0.5, "test_balanced_interval": (0.312, 0.688),
}  # fmt: skip


def told(right, count, **more):
    split = {"train": 9, "val": 9, "test": count}
    found = {
        "test_accuracy": right / count,
        "test_interval": share_interval([1] * right + [0] * (count - right), range(count)),
    }
    return summary(REPORT | {"split": split, "used": split} | found | more)


def test_few_pictures_or_groups_are_told_with_what_chance_may_do():
    assert "test         80.00 %, 95 % interval 49.0 to 94.3 %\n" in told(8, 10)
    assert "test         80.00 %, 95 % interval 49.0 to 94.3 %, of 4 groups\n" in told(8, 10, test_groups=4)
    assert "interval 46.9 to 53.1 %, of 999 groups\n" in told(500, 1000, test_groups=999)


def test_of_many_and_of_validation_it_is_not():
    assert "interval" not in told(500, 1000) and told(9, 10).count("interval") == 1
    assert "interval" not in told(500, 1000, test_groups=1000) and "interval" not in told(9, 10, test_interval=None)


def test_the_classes_that_are_missed_most_are_named():
    """One without a test picture and one without a mistake are not."""
    counts = [
        [3, 0, 0, 0, 1, 0],
        [0, 9, 0, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0] * 6,
        [0, 0, 0, 0, 9, 1],
        [0, 0, 0, 0, 1, 3],
    ]
    confusion = {"classes": [*"abcde", "f\x1b"], "counts": counts}
    text = told(25, 29, confusion=confusion)
    assert "\n             worst of 5 classes: c 50.0 % (of 2), a 75.0 % (of 4), f\\x1b 75.0 % (of 4)\n" in text
    assert "worst" not in told(9, 9, confusion={"classes": ["a"], "counts": [[9]]}) and "worst" not in told(9, 10)


def test_of_unequal_classes_accuracy_is_told_with_what_it_hides():
    """Planted: a network that always answers with the frequent class."""
    unequal = {"classes": ["naevus", "melanoma", "none"], "counts": [[67, 0, 0], [33, 0, 0], [0] * 3]}
    line = "balanced 50.0 %, 95 % interval 31.2 to 68.8 %, the mean of the classes ("
    assert f"\n             {line}always naevus: 67.0 % right, 50.0 % balanced)\n" in told(67, 100, confusion=unequal)
    alike = {"classes": ["a", "b"], "counts": [[65, 0], [35, 0]]}
    assert "balanced" not in told(65, 100, confusion=alike)


def test_a_group_that_is_not_kept_is_told():
    """Rounding of float32 is not, nor is anything of a network that claims none."""
    errors = {"90°": {"error": 0.098, "exact": True}, "45°": {"error": 0.4, "exact": False}}
    line = "\n             broken: the network is said to keep R8; gsa check finds the layer"
    assert line in told(9, 10, group="R8", equivariance_error=errors)
    few = errors | {"90°": {"error": 3e-7, "exact": True}}
    assert "broken" not in told(9, 10, group="R8", equivariance_error=few)
    assert "broken" not in told(9, 10, equivariance_error=errors)
    nothing = errors | {"90°": {"error": float("nan"), "exact": True}}
    assert "broken" in told(9, 10, group="R8", equivariance_error=nothing)


def test_the_area_of_two_classes_is_told_with_its_interval():
    confusion = {"classes": ["a", "b"], "counts": [[5, 0], [0, 5]]}
    text = told(10, 10, confusion=confusion, test_auroc=1.0, test_auroc_interval=(0.678, 1.0))
    assert "\n             area under the ROC curve 1.0000, 95 % interval 0.678 to 1.000\n" in text


def test_the_chosen_epoch_is_counted_from_one():
    assert "9 MB at most, weights of epoch 3 of 12\n" in told(9, 10, best_epoch=2)
    assert "weights of" not in told(9, 10, best_epoch=None) and "weights of" not in told(9, 10)


def test_one_epoch_is_one():
    assert "training     1 epoch, 1 s" in told(9, 10, epochs=1) and "training     12 epochs, 1 s" in told(9, 10)
