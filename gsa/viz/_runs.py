"""How several runs went, beside one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy

from gsa.viz._figure import empty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_runs"]

_COLOURS = 10  # that can be told from one another
_WIDE = 60  # letters of a name that has a line of its own
_UNITS = {"hours": 3600, "minutes": 60, "seconds": 1}
_Row = Mapping[str, float]


def draw_runs(runs: Mapping[str, Sequence[Sequence[_Row]]], metric: str = "val/accuracy") -> Figure:
    """A metric of runs against the epoch, and against the time that they took; of several of one name, their mean.

    Args:
        runs: name → histories of the runs that bear it, such as one for each seed. A history has a dictionary an epoch:
            "epoch", "seconds" and, where it was measured, the metric. Ten names have colours, others are grey.
        metric: what is drawn.

    Returns:
        A matplotlib figure: runs thin, means thick as far as all of their runs go.
    """
    figure = empty_figure(10, 4)
    axes = figure.subplots(1, 2, sharey=True)
    longest = max((sum(row["seconds"] for row in rows) for histories in runs.values() for rows in histories), default=0)
    unit = next((name for name, seconds in _UNITS.items() if longest >= 2 * seconds), "seconds")
    for place, (name, histories) in enumerate(runs.items()):
        curves = [curve for rows in histories if len(curve := _curve(rows, metric, _UNITS[unit]))]
        style = {"color": f"C{place}" if place < _COLOURS else "0.8", "zorder": 3 - place / len(runs)}
        if len(curves) > 1:
            for axis, column in zip(axes, (0, 1), strict=True):
                for curve in curves:
                    axis.plot(curve[:, column], curve[:, 2], alpha=0.4, linewidth=0.7, **style)
        if curves:
            shared = min(map(len, curves))
            mean = numpy.mean([curve[:shared] for curve in curves], axis=0)
            label = f"{name} (mean of {len(curves)})" if len(curves) > 1 else name
            for axis, column in zip(axes, (0, 1), strict=True):
                axis.plot(mean[:, column], mean[:, 2], marker="." if shared == 1 else None, **style,
                          label=label if place < _COLOURS and column == 0 else None)  # fmt: skip
    for axis, along in zip(axes, ("epoch", unit), strict=True):
        axis.set_xlabel(along)
        axis.grid(alpha=0.3)
    axes[0].locator_params("x", integer=True, min_n_ticks=1)
    axes[0].set_title(metric.replace("val/", "validation ").replace("_", " "), fontsize=10)
    if axes[0].lines:
        columns = 2 if max(map(len, runs)) < _WIDE else 1
        figure.legend(loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
    return figure


def _curve(rows: Sequence[_Row], metric: str, unit: int) -> numpy.ndarray:
    """[n, 3]: epochs, the time since the beginning, and the metric, where that was measured."""
    times = numpy.cumsum([row["seconds"] for row in rows]) / unit
    epochs = zip(rows, times, strict=True)
    points = [(row["epoch"] + 1, passed, row[metric]) for row, passed in epochs if metric in row]
    return numpy.array(points).reshape(-1, 3)
