"""What a run says of itself at its end: report.json, which text and pictures are made from."""

import math
import platform
import resource
import sys
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gsa._version import VERSION
from gsa.files import read_signed, signed, write_whole
from gsa.report._certainty import area_interval, share_interval
from gsa.report._subject import Findings, Subject
from gsa.symmetry import equivariance_error, measured_group

__all__ = ["describe", "forget_peak_memory", "peak_memory_mb", "read_report", "symmetry_of", "write_report"]

_MEASURED_ON = 20  # pictures, whose logits show the equivariance error
_FOUND = (
    "test_interval",
    "test_balanced_interval",
    "test_auroc_interval",
    "test_groups",
    "class_accuracy",
    "confusion",
    "calibration_error",
)
_PACKAGES = ("torch", "lightning", "torchvision", "hydra-core")


def describe(
    run: Subject,
    metrics: dict[str, float],
    before: dict[str, dict],
    after: dict[str, dict],
    findings: Findings | None = None,
) -> dict[str, Any]:
    """The keys of report.json.

    Args:
        run: with its network trained.
        metrics: "val/accuracy", "val/balanced_accuracy", "test/accuracy", "test/balanced_accuracy" and, of two classes,
            "test/auroc", as far as they were measured.
        before, after: `symmetry_of` the run before and after training.
        findings: what the test has shown besides.
    """
    rows, device = run.history.rows, run.trainer.strategy.root_device
    seconds = [row["seconds"] for row in rows]
    data, model = run.data.describe(), run.config.model
    return {
        "model": model.get("name") or type(run.network).__name__,
        "group": getattr(getattr(run.network, "group", None), "name", None),
        "form": getattr(run.network, "form", model.get("form")),  # published=True has its own
        "parameters": sum(p.numel() for p in run.network.parameters()),
        "epochs": len(rows),
        "best_epoch": run.best_epoch,
        "train_seconds": sum(seconds),
        "seconds_per_epoch": sum(seconds) / len(rows) if rows else None,
        "peak_memory_mb": peak_memory_mb(device),
        "estimate": None if run.estimate is None else asdict(run.estimate),
        "chosen_by": None if run.best_epoch is None else str(run.best.monitor).replace("/", "_"),
        "val_accuracy": metrics.get("val/accuracy"),
        "val_balanced_accuracy": metrics.get("val/balanced_accuracy"),
        "test_accuracy": metrics.get("test/accuracy"),
        "test_balanced_accuracy": metrics.get("test/balanced_accuracy"),
        "test_auroc": metrics.get("test/auroc"),
        **_found(run, findings),
        "equivariance_error": after,
        "equivariance_error_before": before,
        "seed": run.config.seed,
        "versions": {"gsa": VERSION}
        | {name: version(name) for name in _PACKAGES}
        | {"python": platform.python_version()},
        "machine": _machine(device),
        "data": {
            key: data[key] for key in ("name", "source", "channels", "left_out", "files", "groups") if key in data
        },
        "split": {part: data[part] for part in ("train", "val", "test")},
        "used": _used(run),
        "history": rows,
    }


def _found(run: Subject, findings: Findings | None) -> dict[str, Any]:
    """What the test has shown besides its metrics.

    The 95 % intervals of its accuracies and, of two classes, of the area under the ROC curve; of how many groups its
    pictures are, if of any; the share of each class that was found, None of one that was not tested; counts, a row a
    true class and a column a predicted one.
    """
    if findings is None:
        return dict.fromkeys(_FOUND)
    rows, groups, classes = findings.rows.tolist(), run.data.group_of, list(run.data.classes)
    files = run.data.parts["test"].files
    units = [groups.get(files[row][0]) or files[row][0] for row in rows] if groups else rows
    counts, labels = findings.confusion.tolist(), findings.labels
    right = labels == findings.chances.argmax(1)
    return {
        "test_interval": list(share_interval(right, units)),
        "test_balanced_interval": list(share_interval(right, units, labels.tolist())),
        "test_auroc_interval": _interval_of_area(findings.chances, labels, units),
        "test_groups": len(set(units)) if groups else None,
        "class_accuracy": {
            name: row[label] / sum(row) if any(row) else None
            for label, (name, row) in enumerate(zip(classes, counts, strict=True))
        },
        "confusion": {"classes": classes, "counts": counts},
        "calibration_error": findings.calibration_error,
    }


def _interval_of_area(chances: Tensor, labels: Tensor, units: Sequence[Hashable]) -> list[float] | None:
    """None of more classes than two, or where all pictures are of one."""
    if chances.shape[1] != 2 or labels.unique().numel() != 2:
        return None
    second_over_first = chances[:, 1].double().log() - chances[:, 0].double().log()  # where probabilities round to 1
    return list(area_interval(second_over_first, labels == 1, units))


def symmetry_of(run: Subject) -> dict[str, dict]:
    """Relative change of the logits of the first test pictures under each element: name → {"error": …, "exact": …}.

    Exact elements move pixels; for the others the error includes what sampling the pictures loses.
    """
    measured = measured_group(getattr(run.network, "group", None))
    pictures, _ = run.data.parts["test"].first(_MEASURED_ON)
    training = run.network.training
    run.network.eval()
    errors = equivariance_error(run.logits, pictures, measured, refuse_silent=False)  # as a ViT is before training
    run.network.train(training)
    exact = set(measured.grid_elements)
    return {measured.describe(g): {"error": error, "exact": g in exact} for g, error in errors.items()}


def write_report(report: dict[str, Any], folder: Path) -> None:
    """report.json, whole or not at all, with "sha256" over what it says; what is not finite is null."""
    write_whole(folder / "report.json", signed(_finite(report)))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(of_name) for name, of_name in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_report(folder: Path) -> dict[str, Any]:
    """What `write_report` has been given; a report of an earlier version has no digest.

    Raises:
        FileNotFoundError: there is none.
        ValueError: one that is damaged or was changed.
    """
    report, _ = read_signed(folder / "report.json")
    for key in ("val_accuracy", "test_accuracy"):
        if key not in report or not isinstance(report[key], int | float | None):
            raise ValueError(f"{folder / 'report.json'} is not the report of a run: there is no number at {key}")
    return report


def _used(run: Subject) -> dict[str, int]:
    """Pictures of one epoch of training, of a validation and of the test; fewer than there are under limits."""
    trainer, loaders = run.trainer, run.data
    batches = {
        "val": sum(trainer.num_val_batches or trainer.validate_loop.max_batches),
        "test": sum(trainer.num_test_batches),
    }
    looked_at = {
        part: min(int(count) * loaders.pictures_at_once(part), len(loaders.parts[part]))
        for part, count in batches.items()
    }
    return {"train": loaders.pictures_of(int(trainer.num_training_batches)) if run.history.rows else 0, **looked_at}


def forget_peak_memory(device: torch.device) -> None:
    """Begin anew with `peak_memory_mb`, as every job of a sweep does; of a process, where the system is Linux."""
    if device.type == "cuda" and torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats(device)
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak_memory_mb(device: torch.device) -> float:
    """The most memory taken since it was forgotten: of the device, if it is a GPU, else of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB, but bytes on macOS
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def _machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
