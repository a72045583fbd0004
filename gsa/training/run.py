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
from gsa.training._config import ConfigError, flat
from gsa.training._folder import (
    chosen_metrics,
    finished_report,
    refuse_other_network,
    refuse_other_training,
    where_it_stands,
    write_config,
)
from gsa.training._gallery import draw_gallery
from gsa.training._quiet import quiet
from gsa.training._ranks import is_first_rank, other_ranks, warn_of_batch_norm
from gsa.training._report import describe_run, measured_group, summary, symmetry_of, write_json
from gsa.training._wandb import show_report

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
    folder = Path(config.output_dir)
    if config.ckpt_path == "auto":
        if (finished := finished_report(config, folder)) is not None:
            print(f"finished already: {folder}")
            return chosen_metrics(finished), {"report": finished, "folder": folder}
        config.ckpt_path = where_it_stands(folder, config)
    if config.seed is None:
        config.seed = torch.seed() % 2**32
    with quiet(), _closing_wandb():
        lightning.seed_everything(config.seed, verbose=False)
        parts = build(config)
        warn_of_batch_norm(parts.trainer, parts.network)
        _read_inputs(config, parts)
        if is_first_rank():
            resolved = OmegaConf.to_yaml(config, resolve=True)
            write_config(resolved, folder)
            rich.print(Syntax(resolved, "yaml", background_color="default"))
            for logger in parts.trainer.loggers:
                logger.log_hyperparams(flat(OmegaConf.to_container(config, resolve=True)))
        with other_ranks(parts.trainer, folder):
            metrics, before, confusion = _train_and_test(config, parts)
        objects = {
            "data": parts.data,
            "network": parts.network,
            "classifier": parts.classifier,
            "trainer": parts.trainer,
            "history": parts.history.rows,
            "folder": folder,
        }
        if is_first_rank():
            objects["report"] = _report(config, parts, metrics, before, confusion, folder)
    return metrics, objects


def _train_and_test(config: DictConfig, parts: Parts) -> tuple[dict[str, float], dict, torch.Tensor | None]:
    """What all processes of a run do together."""
    before = _symmetry(parts)
    try:
        metrics = _fit(config, parts)
        return metrics, before, _test(config, parts, metrics)
    except (torch.OutOfMemoryError, RuntimeError) as error:
        if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
            raise
        size, device = config.data.batch_size, parts.trainer.strategy.root_device
        raise MemoryError(
            f"out of memory on {device} with data.batch_size={size} ({str(error).splitlines()[0]}): "
            f"data.batch_size={size // 2} trainer.accumulate_grad_batches=2 takes the same steps with half of it"
        ) from error


def _report(config: DictConfig, parts: Parts, metrics: dict, before: dict, confusion, folder: Path) -> dict[str, Any]:
    """report.json, report.txt and the pictures."""
    report = describe_run(config, parts, metrics, before, _symmetry(parts))
    if config.report:
        print("drawing the report's pictures")
        draw_gallery(folder, report, parts, confusion)
    show_report(parts.trainer, report, folder, _wants_artifacts(config))
    (folder / "report.txt").write_text(summary(report) + "\n")
    write_json(report, folder)  # the last, because it says that the run is finished
    print(f"\n{summary(report)}\nreport       {folder}")
    return report


def _read_inputs(config: DictConfig, parts: Parts) -> None:
    """Data and checkpoint, before the first step."""
    try:
        parts.data.prepare_data()
        parts.data.setup()
        if config.ckpt_path is not None:
            checkpoint = read_checkpoint(config.ckpt_path)
            refuse_other_network(checkpoint, config)
            if config.train:
                refuse_other_training(checkpoint, config)
    except (ValueError, FileNotFoundError) as error:
        raise ConfigError(str(error)) from error


def _symmetry(parts: Parts) -> dict[str, dict]:
    """The equivariance error of the network on the first test pictures."""
    pictures, _ = parts.data.parts["test"].first(PICTURES)
    training = parts.network.training
    parts.network.eval()
    errors = symmetry_of(parts.logits, pictures, measured_group(parts.network))
    parts.network.train(training)
    return errors


def _fit(config: DictConfig, parts: Parts) -> dict[str, float]:
    """Train (or resume), and leave the weights of the best epoch in the network."""
    trainer, chosen = parts.trainer, config.ckpt_path
    metrics = {}
    if config.train:
        try:
            with parts.listener.listening():
                trainer.fit(parts.classifier, parts.data, ckpt_path=config.ckpt_path, weights_only=True)
            parts.listener.stop_if_told()
        except SystemExit as error:
            if isinstance(error.__context__, KeyboardInterrupt):  # Lightning's answer to Ctrl-C
                raise KeyboardInterrupt from None
            raise
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
    return parts.classifier.confusion_counts


def _wants_artifacts(config: DictConfig) -> bool:
    return any(node.get("log_model") for node in (config.logger or {}).values())


@contextmanager
def _closing_wandb() -> Iterator[None]:
    """One run a job: without this, the next job of a sweep would go on writing into it."""
    try:
        yield
    finally:
        if "wandb" in sys.modules and sys.modules["wandb"].run is not None:
            sys.modules["wandb"].finish()
