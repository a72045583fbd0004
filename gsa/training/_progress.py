"""What a run shows of how far it is."""

from typing import Any

import lightning
from lightning.pytorch.callbacks import RichProgressBar

__all__ = ["EpochProgress"]


class EpochProgress(RichProgressBar):
    """Lightning's bar, with epochs counted from 1, as in reports, and without the number of a logger's folder.

    In a file there are no bars, which would be written at the end only, but a line an epoch.
    """

    @property
    def is_enabled(self) -> bool:
        return super().is_enabled and _moves()

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        super().on_train_epoch_end(trainer, pl_module)
        if super().is_enabled and not _moves():  # of a process that is not to be silent
            metrics = self.get_metrics(trainer, pl_module).items()
            values = ", ".join(f"{name} {float(value):.3f}" for name, value in metrics)
            print(f"{self._get_train_description(trainer.current_epoch)} {values}", flush=True)

    def _get_train_description(self, current_epoch: int) -> str:
        most = self.trainer.max_epochs
        limit = f"/{most}" if most is not None and most >= 0 else ""
        return f"Epoch {current_epoch + 1}{limit}".ljust(len(self.validation_description))  # all begin at one place

    def get_metrics(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> dict[str, Any]:
        return {name: value for name, value in super().get_metrics(trainer, pl_module).items() if name != "v_num"}


def _moves() -> bool:
    """Whether what is printed can be drawn over."""
    from rich import get_console  # as Lightning has it: whoever wants no bar need not have it

    return get_console().is_terminal or get_console().is_jupyter
