"""The keys at the top of a configuration."""

from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

__all__ = ["ConfigError", "RunConfig"]


class ConfigError(ValueError):
    """A configuration that cannot be run; its message names the key."""


@dataclass
class RunConfig:
    """Names and types of the top of configs/train.yaml, which describes them and gives their values."""

    data: Any = MISSING
    model: Any = MISSING
    optimizer: Any = MISSING
    scheduler: Any = MISSING
    trainer: Any = MISSING
    callbacks: Any = MISSING
    logger: Any = MISSING
    output_dir: str = MISSING
    seed: int | None = MISSING
    train: bool = MISSING
    test: bool = MISSING
    ckpt_path: str | None = MISSING
    start_from: str | None = MISSING
    compile: Any = MISSING
    ema: float | None = MISSING
    label_smoothing: float = MISSING
    mixup: float = MISSING
    class_weights: Any = MISSING
    tags: Any = MISSING
    paths: Any = MISSING
    report: bool = MISSING
    objective: str = MISSING


ConfigStore.instance().store(name="run_config", node=RunConfig)
