"""The progress bar of a run."""

from typing import Any

import lightning
from lightning.pytorch.callbacks import RichProgressBar

__all__ = ["EpochProgress"]


class EpochProgress(RichProgressBar):
    """Lightning's bar, with epochs counted from 1, as in reports, and without the number of a logger's folder."""

    def _get_train_description(self, current_epoch: int) -> str:
        most = self.trainer.max_epochs
        limit = f"/{most}" if most is not None and most >= 0 else ""
        return f"Epoch {current_epoch + 1}{limit}".ljust(len(self.validation_description))  # all begin at one place

    def get_metrics(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> dict[str, Any]:
        return {name: value for name, value in super().get_metrics(trainer, pl_module).items() if name != "v_num"}
