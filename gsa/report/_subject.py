"""What a report is of."""

from typing import Any, Protocol

import lightning
from torch import Tensor, nn

__all__ = ["Findings", "Subject"]


class Subject(Protocol):
    """The objects of a run.

    Attributes:
        config: its configuration.
        data: a module with `parts`, `group_of`, `describe()`, and loaders; a part has `files`, path and label of each,
            or None.
        network: [B, C, H, W] → logits [B, num_classes].
        trainer: that trained it.
        history: `rows`, one an epoch.
        best: the callback that chooses an epoch by its `monitor`, or None.
        best_epoch: whose weights the network has, counted from 0; None where none was chosen.
        estimate: `seconds` and `memory_mb` that it was expected to take, or None.
    """

    config: Any
    data: Any
    network: nn.Module
    trainer: lightning.Trainer
    history: Any
    best: Any
    best_epoch: int | None
    estimate: Any

    def logits(self, raw: Tensor) -> Tensor:
        """The network on pictures as they were read: [B, C, H, W] in [0, 1] → [B, num_classes]."""
        ...

    def normalised(self, raw: Tensor) -> Tensor:
        """Pictures as the network takes them, where it is and in its precision."""
        ...


class Findings(Protocol):
    """What a test has shown.

    Attributes:
        confusion: counts [K, K], true class by predicted class.
        calibration_error: expected calibration error.
        mistakes: with `confidence`, `picture` [C, H, W], `label`, `predicted` and `row`, the most confident first.
        rows, labels, chances: of the pictures that were tested, [N], [N] and [N, K].
    """

    confusion: Any
    calibration_error: Any
    mistakes: Any
    rows: Any
    labels: Any
    chances: Any
