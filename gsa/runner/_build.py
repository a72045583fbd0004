"""From a configuration to the objects of a run, each made once and looked at before anything is read or written."""

import logging
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, Checkpoint, LearningRateMonitor, ModelCheckpoint, ProgressBar, Timer
from lightning.pytorch.profilers import PassThroughProfiler
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from lightning.pytorch.utilities.seed import isolate_rng
from omegaconf import DictConfig
from torch import Tensor, nn

from gsa._streams import note
from gsa.data import completed
from gsa.files import one_line
from gsa.report import WandbSections, outlive_wandb
from gsa.runner._dotted import values_of
from gsa.runner._instances import make
from gsa.runner._keys import GRAPH, refuse_bad_keys
from gsa.runner._older import as_meant
from gsa.runner._quiet import at_levels
from gsa.runner._ranks import check_processes, is_first_rank
from gsa.runner._resume import where_it_stands
from gsa.runner._schema import ConfigError
from gsa.runner._slurm import environments
from gsa.runner._wandb import complete_wandb, is_of_wandb, offline_after, stay_offline, why_offline
from gsa.training import (
    AveragedWeights,
    Classifier,
    FiniteSteps,
    History,
    MovedRuns,
    RecordedClassifier,
    SafeCheckpointIO,
    SaveOnSignal,
    SeededSteps,
    TrainingLoss,
    check_recordable,
    schedule,
)
from gsa.training.adapter import (
    forget_requeueing,
    fuses,
    leave_out_idle_hooks,
    resume_between_epochs,
    synchronise_batch_norm_on_gpus_only,
)

__all__ = ["Run", "build", "check", "make_loggers"]

# What Lightning says of devices, and attention of its backend, the run says itself.
_SILENT = {"lightning.pytorch": logging.ERROR, "gsa.ops": logging.WARNING}


@dataclass
class Run:
    """The objects of a run, and the configuration they were made from.

    `ckpt_path` and `seed` of the configuration are settled: a file or None, a number. The data are a module like
    `gsa.data.PictureDataModule`.
    """

    config: DictConfig
    data: Any
    network: nn.Module
    classifier: Classifier
    history: History
    listener: SaveOnSignal
    best: ModelCheckpoint | None  # what keeps the best epoch
    trainer: lightning.Trainer
    estimate: Any = None  # of what it will take
    best_epoch: int | None = None  # whose weights the network has, from 0; None where none was chosen

    @property
    def folder(self) -> Path:
        return Path(self.config.output_dir)

    def logits(self, raw: Tensor) -> Tensor:
        """The network on pictures as they were read: [B, C, H, W] in [0, 1] → [B, num_classes]."""
        chunks = self.normalised(raw).split(self.data.eval_batch_size)
        return torch.cat([self.network(chunk) for chunk in chunks])

    def normalised(self, raw: Tensor) -> Tensor:
        """Pictures as the network takes them, where it is and in its precision."""
        return self.data.parts["test"].normalise(raw).to(next(self.network.parameters()))


def build(config: DictConfig) -> Run:
    """Data, network, classifier, callbacks and trainer of a composed configuration; refuse what cannot be run.

    Keys and values are compared with what their targets take; everything is made but the loggers, which write; the
    network gets the channels and classes of the data, and is shown one empty picture. Data are not read.

    Raises:
        ConfigError: naming the key, or what refused it and why.
    """
    config = config.copy()
    if draws_seed := config.seed is None:
        config.seed = torch.seed() % 2**32
    refuse_bad_keys(config)
    if config.ckpt_path == "auto":
        config.ckpt_path = where_it_stands(Path(config.output_dir), config)
    lightning.seed_everything(config.seed, verbose=False)
    with at_levels(_SILENT):
        try:
            run = _make_all(config)
            check_processes(run.trainer, run.data.batch_size, draws_seed)
            _try(run)
        except (ValueError, TypeError, FileNotFoundError, ModuleNotFoundError, MisconfigurationException) as error:
            raise ConfigError(_in_our_words(error)) from error
        except Exception as error:  # of torch's, Lightning's, or a class of the user's
            raise ConfigError(f"{type(error).__name__}: {one_line(error)}") from error
    return run


def _in_our_words(error: Exception) -> str:
    if "No supported gpu backend found" in str(error):
        return "trainer.accelerator=gpu needs a GPU, but torch finds none here; trainer=default takes what there is"
    if "interactive environment" in str(error):
        return "several processes cannot be started from a notebook: train by the command, as in !python train.py …"
    return str(error)


def check(config: DictConfig) -> None:
    """Refuse a configuration that cannot be run, and leave nothing behind.

    Raises:
        ConfigError: as `build`.
    """
    seeded = {name: os.environ.get(name) for name in ("PL_GLOBAL_SEED", "PL_SEED_WORKERS")}
    try:
        with isolate_rng():
            build(config)
    finally:
        for name, value in seeded.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def make_loggers(run: Run) -> None:
    """Give the trainer the loggers of the configuration, which write into the run's folder.

    Raises:
        ConfigError: a logger whose package is not installed, or that cannot begin, such as one whose server is gone.
    """
    for name, node in (run.config.logger or {}).items():
        try:
            logger = _begun(node, run)
        except Exception as error:
            hint = f"; logger.{name}.offline=true writes to the disk only" if "offline" in node else ""
            refused = ConfigError(f"logger.{name} cannot begin: {one_line(error)}{hint}")
            if (offline := offline_after(error, node)) is None:
                raise refused from error
            try:
                logger = _begun(offline, run)
            except Exception:
                raise refused from error
            stay_offline()
        outlive_wandb(logger)
        if is_first_rank() and is_of_wandb(node) and (why := why_offline()):
            note(f"wandb logs offline, as {why}")
        run.trainer.loggers = [*run.trainer.loggers, logger]


def _begun(node: DictConfig, run: Run) -> Any:
    """A logger, of whose first use, after hours, it would else depend whether it can begin."""
    logger = make(complete_wandb(node, run.config, run.data.name))
    _ = logger.experiment
    return logger


def _make_all(config: DictConfig) -> Run:
    plain = as_meant(values_of(config))
    data = completed(make(config.data), config.seed)
    network = make(plain["model"], in_channels=data.in_channels, num_classes=data.num_classes)
    if not isinstance(network, nn.Module):
        raise ConfigError(f"model._target_ must make an nn.Module, but makes {type(network).__name__}")
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise ConfigError(f"a network must have parameters to train, but {type(network).__name__} has none")
    rules = make(config.optimizer), make(config.scheduler)
    weights = plain["class_weights"]
    by_class = {"balanced": True} if weights == "balanced" else {"weights": weights}
    loss = TrainingLoss(data.num_classes, plain["label_smoothing"], plain["mixup"], **by_class)
    kind = RecordedClassifier if config.compile == GRAPH else Classifier
    classifier = kind(network, data.num_classes, *rules, {"run": plain}, loss)
    history, listener = History(), SaveOnSignal(f"{config.output_dir}/checkpoints", config.ckpt_path)
    callbacks: list[Callback] = [SeededSteps(config.seed), FiniteSteps(), MovedRuns(), history, WandbSections(history)]
    if config.ema is not None:
        callbacks.append(AveragedWeights(config.ema))
    callbacks += [make(node) for node in (config.callbacks or {}).values()]
    if not any(isinstance(c, Timer) for c in callbacks):  # the trainer's own cuts epochs, for good
        callbacks.append(Timer(plain["trainer"].get("max_time"), interval="epoch"))
    callbacks.append(listener)
    if not config.logger:
        callbacks = [c for c in callbacks if not isinstance(c, LearningRateMonitor)]  # has nowhere to write
    if not config.trainer.enable_progress_bar:
        callbacks = [c for c in callbacks if not isinstance(c, ProgressBar)]
    best = next((c for c in callbacks if isinstance(c, ModelCheckpoint) and c.monitor), None)
    saves = any(isinstance(c, Checkpoint) for c in callbacks)
    trainer = make(
        config.trainer,
        callbacks=callbacks,
        max_time=None,
        logger=False,
        **({} if saves else {"enable_checkpointing": False}),  # without: Lightning's own
        enable_progress_bar=any(isinstance(c, ProgressBar) for c in callbacks),
        plugins=[SafeCheckpointIO(), *environments(config.trainer.get("strategy") is not None)],
    )
    leave_out_idle_hooks(trainer)
    forget_requeueing(trainer)
    resume_between_epochs(trainer)
    if trainer.precision == "64-true":  # before a checkpoint is read, which float32 would round
        classifier.double()
    synchronise_batch_norm_on_gpus_only(trainer)
    profiler = trainer.profiler
    if not isinstance(profiler, PassThroughProfiler) and profiler.dirpath is profiler.filename is None:
        profiler.dirpath, profiler.filename = config.output_dir, "profile"  # a file, not the screen
    return Run(config, data, network, classifier, history, listener, best, trainer)


def _try(run: Run) -> None:
    """Optimizer and schedule are made, and an empty picture is classified; what is monitored will be logged."""
    for name, node in (run.config.callbacks or {}).items():
        if str(node.get("monitor")).endswith("/auroc") and run.data.num_classes != 2:
            raise ConfigError(
                f"callbacks.{name}.monitor={node.monitor} is of two classes, but the data have {run.data.num_classes}: "
                "monitor val/accuracy or val/loss"
            )
    if run.trainer.strategy.root_device.type == "mps" and str(run.trainer.precision).startswith("64"):
        raise ConfigError(
            f"trainer.precision={run.trainer.precision} needs float64, which no GPU of Apple has: trainer=cpu"
        )
    optimizer = run.classifier.new_optimizer()
    if run.config.compile == GRAPH and run.config.train:
        check_recordable(run.trainer, optimizer)
    if any(group.get("fused") for group in optimizer.param_groups) and not fuses(run.trainer):
        raise ConfigError(
            "optimizer.fused=true does not go with trainer.gradient_clip_val, nor with float16, under "
            f"trainer.precision={run.trainer.precision}: leave one of them out"
        )
    scheduler = schedule(run.classifier.make_scheduler, optimizer, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the optimizer has made no step
        scheduler.step()
    side = run.data.image_size
    with torch.no_grad(), isolate_rng():
        empty = torch.zeros(1, run.data.in_channels, side, side, dtype=next(run.network.parameters()).dtype)
        logits = run.network.eval()(empty)
    run.network.train()
    expected = [1, run.data.num_classes]
    if not isinstance(logits, torch.Tensor) or list(logits.shape) != expected or not logits.is_floating_point():
        found = list(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
        raise ConfigError(
            f"a network must return logits [B, {run.data.num_classes}], one for every class of the data, but of one "
            f"picture {type(run.network).__name__} returns {found}"
        )
