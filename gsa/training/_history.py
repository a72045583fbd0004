"""What a run remembers of itself."""

import time
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

__all__ = ["History"]


class History(Callback):
    """One row of metrics and seconds an epoch; stored in checkpoints, so that resumed runs have all of it.

    Attributes:
        rows: [{"epoch": …, "seconds": …, "train/loss": …, …}]
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self._start, self._before = 0.0, 0.0

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self._start = time.perf_counter() - self._before  # an epoch that goes on is not started again

    def on_train_epoch_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self._start = time.perf_counter()

    def on_train_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        seconds = time.perf_counter() - self._start  # training and validation
        self.rows.append({"epoch": trainer.current_epoch, "seconds": seconds, **metrics})

    def state_dict(self) -> dict[str, Any]:
        return {"rows": list(self.rows), "seconds": time.perf_counter() - self._start}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows, self._before = list(state["rows"]), state.get("seconds", 0.0)
