"""How a run went, epoch by epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gsa.viz._figure import empty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_learning"]

_MARKED = 40  # epochs whose points can still be told apart


def draw_learning(rows: Sequence[dict[str, float]]) -> Figure:
    """Loss and accuracy of training and validation against the epoch.

    Args:
        rows: one dictionary an epoch: "epoch" and any of {train,val}/{loss,accuracy}.

    Returns:
        A matplotlib figure.
    """
    figure = empty_figure(8, 3)
    for axis, metric in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        axis.set_title(metric, fontsize=10)
        for part, color in (("train", "C7"), ("val", "C0")):
            points = [(row["epoch"] + 1, row[f"{part}/{metric}"]) for row in rows if f"{part}/{metric}" in row]
            marker = "." if len(points) <= _MARKED else None
            axis.plot(*zip(*points, strict=True) if points else ((), ()), color=color, marker=marker, label=part)
            lost = [epoch for epoch, value in points if not math.isfinite(value)]
            if lost:
                axis.plot(lost, [0.96] * len(lost), "x", color=color, transform=axis.get_xaxis_transform())
                axis.set_title(f"{metric} (×: not a finite number)", fontsize=10)
        axis.set_xlabel("epoch")
        axis.locator_params("x", integer=True, min_n_ticks=1)
        axis.grid(alpha=0.3)
    axis.legend()
    return figure
