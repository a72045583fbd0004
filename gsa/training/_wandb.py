"""What a run shows on a wandb dashboard besides its curves."""

import hashlib
import json
import os
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import lightning
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import WandbLogger
from omegaconf import DictConfig, OmegaConf, open_dict

from gsa.training._callbacks import History

__all__ = ["Dashboard", "complete_wandb", "show_report", "wandb_is_out_of_reach"]

_NOT_OF_THE_EXPERIMENT = ("seed", "output_dir", "ckpt_path", "logger", "callbacks", "report", "train", "test")


def complete_wandb(node: DictConfig, config: DictConfig) -> DictConfig:
    """Fill in what the configuration leaves open.

    The name has the network and the seed; the group is one for all seeds of an experiment; the job type says whether
    it trains; tags are the data and the group H.
    """
    if not str(node.get("_target_", "")).endswith("WandbLogger"):
        return node
    node = node.copy()
    model = config.model.get("name") or config.model._target_.rsplit(".", 1)[-1]
    data = config.data._target_.rsplit(".", 1)[-1].removesuffix("DataModule").lower()
    plain = OmegaConf.to_container(config, resolve=True)
    experiment = {key: value for key, value in plain.items() if key not in _NOT_OF_THE_EXPERIMENT}
    experiment["data"] = {key: value for key, value in experiment["data"].items() if key != "seed"}
    digest = hashlib.sha256(json.dumps(experiment, sort_keys=True).encode()).hexdigest()[:6]
    found = {
        "name": f"{model}-seed{config.seed}",
        "group": f"{model}-{digest}",
        "job_type": "train" if config.train else "test",
        "tags": [data, str(config.model.get("group", "none"))],
    }
    for key, value in found.items():
        if not node.get(key):
            node[key] = value
    if node.get("offline"):
        with open_dict(node):
            node.mode = "offline"  # Lightning sets the environment, which wandb has already read
    if "log_model" in node:
        node["log_model"] = False  # `show_report` does it, offline too
    return node


class Dashboard(Callback):
    """Sections, summaries and times on wandb; does nothing for other loggers."""

    def on_fit_start(self, trainer: lightning.Trainer, module) -> None:
        for run in _runs(trainer):
            run.define_metric("val/accuracy", step_metric="trainer/global_step", summary="max,last")
            run.define_metric("val/loss", step_metric="trainer/global_step", summary="min,last")
            run.define_metric("train/*", step_metric="trainer/global_step", summary="last")
            run.define_metric("symmetry/*", summary="last")

    def on_train_epoch_end(self, trainer: lightning.Trainer, module) -> None:
        (history,) = (callback for callback in trainer.callbacks if isinstance(callback, History))
        for logger in _loggers(trainer):
            logger.log_metrics({"system/seconds_per_epoch": history.rows[-1]["seconds"]}, trainer.global_step)


def show_report(trainer: lightning.Trainer, report: dict[str, Any], folder: Path, artifacts: bool) -> None:
    """The end of a run on wandb: its report as the summary, equivariance errors as metrics, its pictures.

    Args:
        trainer: of the run.
        report: its report.
        folder: where its pictures and checkpoints are.
        artifacts: whether the best checkpoint is logged as one.
    """
    for logger in _loggers(trainer):
        import wandb

        step = trainer.global_step
        for when in ("before", "after"):
            errors = report["equivariance_error" + ("_before" if when == "before" else "")]
            exact = [e["error"] for e in errors.values() if e["exact"]]
            logger.log_metrics({f"symmetry/{when}/{name}": e["error"] for name, e in errors.items()}, step)
            logger.log_metrics({f"symmetry/{when}/worst_exact": max(exact)}, step)
        logger.log_metrics({"system/peak_memory_mb": report["peak_memory_mb"]}, step)
        run = logger.experiment
        pictures = {f"pictures/{file.stem}": wandb.Image(str(file)) for file in sorted(folder.glob("*.png"))}
        run.log(pictures)
        kept = ("parameters", "epochs", "train_seconds", "val_accuracy", "test_accuracy", "split", "data", "versions")
        best = folder / "checkpoints" / "best.ckpt"
        if artifacts and best.exists():
            run.log_artifact(str(best), name=f"model-{run.id}", type="model", aliases=["best"])
        run.summary.update({f"report/{key}": report[key] for key in kept})


def _loggers(trainer: lightning.Trainer) -> list[WandbLogger]:
    return [logger for logger in trainer.loggers if isinstance(logger, WandbLogger) and trainer.is_global_zero]


def _runs(trainer: lightning.Trainer) -> list[Any]:
    return [logger.experiment for logger in _loggers(trainer)]


def wandb_is_out_of_reach() -> bool:
    """Whether nobody is logged in, or the server does not answer."""
    if os.environ.get("WANDB_MODE", "online") != "online":
        return True
    import wandb
    from requests.utils import get_environ_proxies, get_netrc_auth

    settings = wandb.setup().settings
    server = urlsplit(settings.base_url)
    if not (os.environ.get("WANDB_API_KEY") or settings.api_key or get_netrc_auth(settings.base_url)):
        return True
    if get_environ_proxies(settings.base_url):
        return False  # the proxy knows
    try:
        port = server.port or {"http": 80}.get(server.scheme, 443)
        socket.create_connection((server.hostname, port), timeout=2).close()
    except OSError:
        return True
    return False
