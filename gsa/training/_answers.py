"""What a network said of every picture of a test."""

import torch
from torch import Tensor, distributed
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

__all__ = ["Answers"]


class Answers(Metric):
    """Rows of the test part, labels and probabilities, gathered over all processes, in the order of the rows.

    Process r of n has tested the pictures r, r + n, r + 2n, …, as data modules of ours share them out.
    """

    rows: list[Tensor]
    labels: list[Tensor]
    chances: list[Tensor]

    def __init__(self) -> None:
        super().__init__()
        for name in ("rows", "labels", "chances"):
            self.add_state(name, [], dist_reduce_fx="cat")

    def update(self, labels: Tensor, chances: Tensor) -> None:
        """Add the next batch: labels [B], probabilities [B, K]."""
        together = distributed.is_available() and distributed.is_initialized()
        rank, world = (distributed.get_rank(), distributed.get_world_size()) if together else (0, 1)
        seen = sum(map(len, self.rows))
        self.rows.append(rank + world * torch.arange(seen, seen + len(labels), device=labels.device))
        self.labels.append(labels)
        self.chances.append(chances)

    def compute(self) -> tuple[Tensor, Tensor, Tensor]:
        """Rows [N], labels [N], probabilities [N, K]."""
        rows, labels, chances = (dim_zero_cat(part) for part in (self.rows, self.labels, self.chances))
        order = rows.argsort()
        return rows[order], labels[order], chances[order]
