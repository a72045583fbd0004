"""Training with Lightning, configured by Hydra."""

from gsa.training._build import check
from gsa.training._callbacks import History, SeededSteps
from gsa.training._checkpoints import SafeCheckpointIO, newest_checkpoint, read_checkpoint, write_checkpoint
from gsa.training._classifier import Classifier
from gsa.training._config import ConfigError, RunConfig
from gsa.training._ranks import ddp
from gsa.training._schedules import constant, steps, warmup_cosine
from gsa.training._survival import FiniteSteps, NotFinite, SaveOnSignal, Stopped
from gsa.training.run import train

__all__ = [
    "Classifier",
    "ConfigError",
    "FiniteSteps",
    "History",
    "NotFinite",
    "RunConfig",
    "SafeCheckpointIO",
    "SaveOnSignal",
    "SeededSteps",
    "Stopped",
    "check",
    "constant",
    "ddp",
    "newest_checkpoint",
    "read_checkpoint",
    "steps",
    "train",
    "warmup_cosine",
    "write_checkpoint",
]
