"""What a run shows on a wandb dashboard besides its curves."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

import lightning
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import WandbLogger

from gsa._origin import comes_through

__all__ = ["WandbSections", "outlive_wandb", "show_on_wandb"]


_failed: WeakSet[WandbLogger] = WeakSet()  # whose process has died


class WandbSections(Callback):
    """Sections, summaries and times on wandb; does nothing for other loggers.

    Args:
        history: of the run, with `rows`; it stands before this among the callbacks.
    """

    def __init__(self, history: Any) -> None:
        self.history = history

    def on_fit_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        for logger in _loggers(trainer):
            _forgiving(logger, partial(_define_metrics, logger))

    def on_train_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        for logger in _loggers(trainer):
            logger.log_metrics({"system/seconds_per_epoch": self.history.rows[-1]["seconds"]}, trainer.global_step)


def _define_metrics(logger: WandbLogger) -> None:
    run: Any = logger.experiment
    for name in ("val/accuracy", "val/balanced_accuracy"):
        run.define_metric(name, step_metric="trainer/global_step", summary="max,last")
    run.define_metric("val/loss", step_metric="trainer/global_step", summary="min,last")
    run.define_metric("train/*", step_metric="trainer/global_step", summary="last")
    run.define_metric("symmetry/*", summary="last")
    run.define_metric("turned/*", summary="last")


def outlive_wandb(logger: Any) -> None:
    """Have a run go on without its dashboard, with a warning, if wandb's own process dies while it trains.

    Args:
        logger: any; one that is not wandb's stays as it is.
    """
    if isinstance(logger, WandbLogger):
        for name in ("log_metrics", "log_hyperparams", "finalize"):
            setattr(logger, name, partial(_forgiving, logger, getattr(logger, name)))


def _forgiving(logger: WandbLogger, log: Callable[..., None], *what: Any, **named: Any) -> None:
    if logger in _failed:
        return
    try:
        log(*what, **named)
    except Exception as error:
        if not comes_through("wandb", error):
            raise
        if logger in _failed:  # within
            return
        _failed.add(logger)
        warnings.warn(
            f"wandb has failed, and this run goes on without it: {error or type(error).__name__}; what it was told "
            "until now is in the folder wandb of the run",
            stacklevel=2,
        )


def show_on_wandb(trainer: lightning.Trainer, report: dict[str, Any], folder: Path, artifacts: bool) -> None:
    """`_show`, of a run that is finished whatever wandb makes of it."""
    for logger in _loggers(trainer):
        _forgiving(logger, partial(_show, logger, trainer), report, folder, artifacts)


def _show(
    logger: WandbLogger, trainer: lightning.Trainer, report: dict[str, Any], folder: Path, artifacts: bool
) -> None:
    """The end of a run on wandb: its report as the summary, equivariance errors as metrics, its pictures.

    Args:
        logger: of wandb.
        trainer: of the run.
        report: its report.
        folder: where its pictures and checkpoints are.
        artifacts: whether the best checkpoint is logged as one.
    """
    import wandb

    step = trainer.global_step
    # How a network without poses changes with turned pictures is no symmetry of it.
    section = "symmetry" if report["group"] not in (None, "Z2") else "turned"
    for when in ("before", "after"):
        errors = report["equivariance_error" + ("_before" if when == "before" else "")]
        exact = [e["error"] for e in errors.values() if e["exact"]]
        logger.log_metrics({f"{section}/{when}/{name}": e["error"] for name, e in errors.items()}, step)
        logger.log_metrics({f"{section}/{when}/worst_exact": max(exact)}, step)
    logger.log_metrics({"system/peak_memory_mb": report["peak_memory_mb"]}, step)
    run = logger.experiment
    pictures = {f"pictures/{file.stem}": wandb.Image(str(file)) for file in sorted(folder.glob("*.png"))}
    run.log(pictures)
    accuracies = [f"{part}_{name}" for part in ("val", "test") for name in ("accuracy", "balanced_accuracy")]
    kept = ("parameters", "epochs", "train_seconds", "chosen_by", *accuracies, "split", "data", "versions")
    best = folder / "checkpoints" / "best.ckpt"
    if artifacts and best.exists():
        run.log_artifact(str(best), name=f"model-{run.id}", type="model", aliases=["best"])
    run.summary.update({f"report/{key}": report[key] for key in kept})


def _loggers(trainer: lightning.Trainer) -> list[WandbLogger]:
    return [logger for logger in trainer.loggers if isinstance(logger, WandbLogger) and trainer.is_global_zero]
