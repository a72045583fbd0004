"""What a run remembers of itself."""

import time
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

__all__ = ["History"]


class History(Callback):
    """One row of metrics and seconds an epoch; stored in checkpoints, so that resumed runs have all of it.

    An epoch without validation has no "val/…".

    Attributes:
        rows: [{"epoch": …, "seconds": …, "train/loss": …, …}]
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self._start, self._before = 0.0, 0.0
        self._validated = False

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self._start = time.perf_counter() - self._before  # an epoch that goes on is not started again

    def on_train_epoch_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self._start = time.perf_counter()

    def on_validation_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self._validated = not trainer.sanity_checking

    def on_train_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        found = trainer.callback_metrics.items()  # those of before among them
        passed_over = ("lr-",) if self._validated else ("lr-", "val/")  # rates are of the last step that was logged
        metrics = {name: float(value) for name, value in found if not name.startswith(passed_over)}
        self._validated = False
        seconds = time.perf_counter() - self._start  # training and validation
        self.rows.append({"epoch": trainer.current_epoch, "seconds": seconds, **metrics})

    def state_dict(self) -> dict[str, Any]:
        return {"rows": list(self.rows), "seconds": time.perf_counter() - self._start}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows, self._before = list(state["rows"]), state.get("seconds", 0.0)
