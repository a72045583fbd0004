"""Which of several epochs that are equally good is kept."""

import math
from typing import Any

import lightning
from torch import Tensor

from gsa.training._checkpoint_key import KeyedCheckpoint

__all__ = ["BestCheckpoint"]

_LOSS = "val/loss"
_ROUNDING = 1e-6  # relative: as many right, in other batches


class BestCheckpoint(KeyedCheckpoint):
    """Keeps the epoch whose monitored value is best; of equal ones that with the smaller val/loss, then the later one.

    Accuracies of small validation parts are often equal, and Lightning keeps the first of them, which is hardly
    trained. It does so here, too, where no val/loss is logged or several epochs are kept (`save_top_k`).

    Attributes:
        best_loss: val/loss of the epoch that is kept; None where it is not known.
    """

    best_loss: float | None = None

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"best_loss": self.best_loss}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.best_loss = state_dict.get("best_loss")

    def check_monitor_top_k(self, trainer: lightning.Trainer, current: Tensor | None = None) -> bool:
        loss = _loss(trainer.callback_metrics)
        if not self._is_equal(current) or loss is None or self.best_loss is None:
            better = super().check_monitor_top_k(trainer, current)
        else:
            better = trainer.strategy.reduce_boolean_decision(loss <= self.best_loss)
        if better:
            self.best_loss = loss  # before the checkpoint is written, which has it
        return better

    def _is_equal(self, current: Tensor | None) -> bool:
        if current is None or self.best_model_score is None or self.save_top_k != 1:
            return False
        return math.isclose(float(current), float(self.best_model_score), rel_tol=_ROUNDING)


def _loss(metrics: dict[str, Tensor]) -> float | None:
    """val/loss, where it is logged; what is not a number is the worst."""
    loss = float(metrics[_LOSS]) if _LOSS in metrics else None
    return math.inf if loss is not None and math.isnan(loss) else loss
