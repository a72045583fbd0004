"""What `train` returns of how a run did."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["of_epoch", "of_report", "of_test", "of_validation"]

_VALIDATED = ("val/accuracy", "val/balanced_accuracy")
_TESTED = ("test/accuracy", "test/balanced_accuracy", "test/auroc")


def of_validation(scores: Mapping[str, Any]) -> dict[str, float]:
    """Of what was logged."""
    return {name: float(scores[name]) for name in _VALIDATED if name in scores}


def of_epoch(rows: Sequence[Mapping[str, Any]], epoch: int, best: Any) -> dict[str, float]:
    """Of the epoch that a callback has chosen, by the history of the run, which earlier versions kept less in."""
    (found,) = [row for row in rows if row["epoch"] == epoch][-1:] or [{}]
    return of_validation(found) | {best.monitor: float(best.best_model_score)}


def of_test(scores: Mapping[str, float]) -> dict[str, float]:
    """Of a test; of pictures of one class there is no area under the ROC curve, which is not a number."""
    return {name: scores[name] for name in _TESTED if name in scores and not math.isnan(scores[name])}


def of_report(report: Mapping[str, Any]) -> dict[str, float]:
    """From the report of a finished run."""
    found = {name: report.get(name.replace("/", "_")) for name in (*_VALIDATED, *_TESTED)}
    return {name: number for name, number in found.items() if number is not None}
