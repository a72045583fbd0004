"""A run: from a configuration to a trained, tested and described network."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning
import rich
import torch
from omegaconf import DictConfig, OmegaConf
from rich.syntax import Syntax

from gsa.training._build import Parts, build, check
from gsa.training._checkpoints import read_checkpoint
from gsa.training._config import ConfigError
from gsa.training._gallery import draw_gallery
from gsa.training._quiet import quiet
from gsa.training._report import describe_run, measured_group, summary, symmetry_of, write_json

__all__ = ["train"]

PICTURES = 20  # whose logits show the equivariance error


def train(config: DictConfig) -> tuple[dict[str, float], dict[str, Any]]:
    """Train, select on the validation part, test once, and write a report into the run's folder.

    Args:
        config: composed from configs/train.yaml, by Hydra on the command line or by `hydra.compose`.

    Returns:
        Metrics ("val/accuracy" of the best epoch, "test/accuracy") and the objects of the run: "data", "network"
        (with its best weights), "classifier", "trainer", "history", "report" and "folder".

    Raises:
        ConfigError: a configuration that cannot be run, or data or a checkpoint that cannot be read.
    """
    check(config)
    if config.seed is None:
        config.seed = torch.seed() % 2**32
    folder = Path(config.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    resolved = OmegaConf.to_yaml(config, resolve=True)
    (folder / "config.yaml").write_text(resolved)
    rich.print(Syntax(resolved, "yaml", background_color="default"))
    with quiet(), _closing_wandb():
        lightning.seed_everything(config.seed, verbose=False)
        parts = build(config)
        _read_inputs(config, parts)
        before = _symmetry(parts)
        metrics = _fit(config, parts)
        confusion = _test(config, parts, metrics)
        report = describe_run(config, parts, metrics, before, _symmetry(parts))
        write_json(report, folder)
        if config.report:
            draw_gallery(folder, report, parts, confusion)
    (folder / "report.txt").write_text(summary(report) + "\n")
    print(f"\n{summary(report)}\nreport       {folder}")
    objects = {
        "data": parts.data,
        "network": parts.network,
        "classifier": parts.classifier,
        "trainer": parts.trainer,
        "history": parts.history.rows,
        "report": report,
        "folder": folder,
    }
    return metrics, objects


def _read_inputs(config: DictConfig, parts: Parts) -> None:
    """Data and checkpoint, before the first step."""
    try:
        parts.data.prepare_data()
        parts.data.setup()
        if config.ckpt_path is not None:
            read_checkpoint(config.ckpt_path)
    except (ValueError, FileNotFoundError) as error:
        raise ConfigError(str(error)) from error


def _symmetry(parts: Parts) -> dict[str, dict]:
    """The equivariance error of the network on the first test pictures."""
    test = parts.data.parts["test"]
    pictures, _ = test.first(PICTURES)
    device = next(parts.network.parameters()).device

    def logits(raw):
        return parts.network(test.normalise(raw).to(device))

    training = parts.network.training
    parts.network.eval()
    errors = symmetry_of(logits, pictures, measured_group(parts.network))
    parts.network.train(training)
    return errors


def _fit(config: DictConfig, parts: Parts) -> dict[str, float]:
    """Train (or resume), and leave the weights of the best epoch in the network."""
    trainer, chosen = parts.trainer, config.ckpt_path
    metrics = {}
    if config.train:
        trainer.fit(parts.classifier, parts.data, ckpt_path=config.ckpt_path, weights_only=True)
        if trainer.interrupted:
            raise KeyboardInterrupt
        chosen = None
        if parts.best is not None and parts.best.best_model_path:
            chosen = parts.best.best_model_path
            metrics["val/accuracy"] = float(parts.best.best_model_score)
        elif "val/accuracy" in trainer.callback_metrics:
            metrics["val/accuracy"] = float(trainer.callback_metrics["val/accuracy"])
    if chosen is not None:
        parts.classifier.load_state_dict(read_checkpoint(chosen)["state_dict"])
    if not config.train:
        (scores,) = trainer.validate(parts.classifier, parts.data, verbose=False)
        metrics["val/accuracy"] = scores["val/accuracy"]
    return metrics


def _test(config: DictConfig, parts: Parts, metrics: dict[str, float]) -> torch.Tensor | None:
    """Test once; the counts of the confusion matrix."""
    if not config.test:
        return None
    (scores,) = parts.trainer.test(parts.classifier, parts.data, verbose=False)
    metrics["test/accuracy"] = scores["test/accuracy"]
    return parts.classifier.confusion.compute().cpu()


@contextmanager
def _closing_wandb() -> Iterator[None]:
    """One run a job: without this, the next job of a sweep would go on writing into it."""
    try:
        yield
    finally:
        if "wandb" in sys.modules and sys.modules["wandb"].run is not None:
            sys.modules["wandb"].finish()
