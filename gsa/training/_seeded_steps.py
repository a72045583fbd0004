"""What makes a run repeatable."""

import hashlib
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback

__all__ = ["SeededSteps"]


class SeededSteps(Callback):
    """Makes dropout a function of (seed, epoch, batch): a resumed run draws what it would have drawn.

    Args:
        seed: of the run.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, batch: Any, index: int
    ) -> None:
        key = f"{self.seed} {trainer.current_epoch} {index} {trainer.global_rank}"
        seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1
        device = trainer.strategy.root_device.type
        if device in ("cpu", "cuda"):  # torch.manual_seed asks for the devices of every make, which takes a millisecond
            torch.default_generator.manual_seed(seed)
            if device == "cuda":
                torch.cuda.manual_seed(seed)
        else:
            torch.manual_seed(seed)
