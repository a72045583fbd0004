"""Training with Lightning, configured by Hydra."""

from gsa.training._build import check
from gsa.training._callbacks import History, SeededSteps
from gsa.training._checkpoints import SafeCheckpointIO, read_checkpoint
from gsa.training._classifier import Classifier
from gsa.training._config import ConfigError, RunConfig
from gsa.training._schedules import constant, warmup_cosine
from gsa.training.run import train

__all__ = [
    "Classifier",
    "ConfigError",
    "History",
    "RunConfig",
    "SafeCheckpointIO",
    "SeededSteps",
    "check",
    "constant",
    "read_checkpoint",
    "train",
    "warmup_cosine",
]
