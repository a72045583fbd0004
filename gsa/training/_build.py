"""From a configuration to the objects of a run."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning
import torch
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from lightning.pytorch.callbacks import Callback, EMAWeightAveraging, LearningRateMonitor, ModelCheckpoint, ProgressBar
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

from gsa.training._callbacks import History, SeededSteps
from gsa.training._checkpoints import SafeCheckpointIO
from gsa.training._classifier import Classifier
from gsa.training._config import ConfigError, refuse_bad_keys
from gsa.training._ranks import check_processes
from gsa.training._survival import FiniteSteps, SaveOnSignal
from gsa.training._wandb import Dashboard, complete_wandb

__all__ = ["Parts", "build", "check"]


COMPILE_MODES = (False, True, "reduce-overhead", "max-autotune")


@dataclass
class Parts:
    """The objects of a run."""

    data: lightning.LightningDataModule
    network: nn.Module
    classifier: Classifier
    history: History
    listener: SaveOnSignal
    best: ModelCheckpoint | None  # what kept the best epoch
    trainer: lightning.Trainer

    def logits(self, raw: Tensor) -> Tensor:
        """The network on pictures as they were read: [B, C, H, W] in [0, 1] → [B, num_classes]."""
        return self.network(self.normalised(raw))

    def normalised(self, raw: Tensor) -> Tensor:
        """Pictures as the network takes them, where it is and in its precision."""
        return self.data.parts["test"].normalise(raw).to(next(self.network.parameters()))


def check(config: DictConfig) -> None:
    """Refuse a configuration that cannot be run, before data are read or anything is written.

    Keys and values are compared with what their targets take; then everything but the loggers is built, and the
    network is shown one empty picture.

    Raises:
        ConfigError: naming the key, or what refused it and why.
    """
    config = config.copy()
    if config.compile not in COMPILE_MODES:
        raise ConfigError(f"compile must be one of {COMPILE_MODES}, but got {config.compile!r}")
    config.compile = False  # one picture is not worth it
    if draws_seed := config.seed is None:
        config.seed = 0
    refuse_bad_keys(config)
    if config.ckpt_path not in (None, "auto") and not Path(config.ckpt_path).is_file():
        raise ConfigError(f"there is no checkpoint at {config.ckpt_path}")
    with _silence(), torch.random.fork_rng(devices=[]):
        try:
            parts = build(config, log=False)
            check_processes(parts.trainer, config.data.batch_size, draws_seed)
            optimizer = parts.classifier.make_optimizer(parts.network.parameters())
            parts.classifier.make_scheduler(optimizer, 100)
            side = parts.data.image_size
            with torch.no_grad():
                parts.network.eval()(torch.zeros(1, parts.data.in_channels, side, side))
        except (ValueError, TypeError, FileNotFoundError, ModuleNotFoundError, MisconfigurationException) as error:
            raise ConfigError(str(error)) from error


def build(config: DictConfig, log: bool = True) -> Parts:
    """Data, network, classifier, callbacks and trainer of a composed configuration.

    The network gets the channels and classes of the data.
    """
    for key in ("in_channels", "num_classes"):
        if key in config.model:
            raise ConfigError(f"model.{key} is that of the data and cannot be set")
    data = _make(config.data)
    network = _make(config.model, in_channels=data.in_channels, num_classes=data.num_classes)
    if config.compile:
        network.compile(mode=None if config.compile is True else config.compile)
    plain = OmegaConf.to_container(config, resolve=True)
    classifier = Classifier(network, data.num_classes, _make(config.optimizer), _make(config.scheduler), {"run": plain})
    history, listener = History(), SaveOnSignal(f"{config.output_dir}/checkpoints")
    callbacks: list[Callback] = [
        SeededSteps(config.seed),
        FiniteSteps(),
        history,
        Dashboard(),
    ]
    if config.ema is not None:
        callbacks.append(EMAWeightAveraging(decay=config.ema))
    callbacks.append(listener)  # saves what the others have made of the step
    callbacks += [_make(node) for node in (config.callbacks or {}).values()]
    loggers = [_make(complete_wandb(node, config)) for node in (config.logger or {}).values()] if log else []
    if not loggers:
        callbacks = [c for c in callbacks if not isinstance(c, LearningRateMonitor)]  # has nowhere to write
    best = next((c for c in callbacks if isinstance(c, ModelCheckpoint) and c.monitor), None)
    trainer = _make(
        config.trainer,
        callbacks=callbacks,
        logger=loggers or False,
        enable_checkpointing=any(isinstance(c, ModelCheckpoint) for c in callbacks),  # without: Lightning's own
        enable_progress_bar=config.trainer.enable_progress_bar and any(isinstance(c, ProgressBar) for c in callbacks),
        plugins=[SafeCheckpointIO()],
    )
    return Parts(data, network, classifier, history, listener, best, trainer)


def _make(node: DictConfig, **more: Any) -> Any:
    """`hydra.utils.instantiate`, with the error of the target itself."""
    try:
        return instantiate(node, _convert_="all", **more)
    except InstantiationException as error:
        if error.__cause__ is None or isinstance(error.__cause__, InstantiationException):
            raise ConfigError(str(error).splitlines()[0]) from error
        if isinstance(error.__cause__, ModuleNotFoundError):  # a logger's package, an extra
            raise ConfigError(str(error.__cause__)) from error
        raise error.__cause__ from None


@contextmanager
def _silence() -> Iterator[None]:
    """What Lightning says of devices, it says when the run begins."""
    log = logging.getLogger("lightning.pytorch")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
