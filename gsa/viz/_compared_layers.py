"""Where networks lose a symmetry, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gsa.symmetry import LayerReport
from gsa.viz._figure import empty_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_compared_layers"]

_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")  # told apart by the colour-blind (Okabe & Ito)
_MARKS = "oDs^"
_FLOOR = 1e-18  # layers without any error, which a logarithm cannot show
_MOST = 10.0
_WHOLE = "the output"  # no submodule is called so, with a space


def draw_compared_layers(
    reports: Mapping[str, LayerReport], depth: int | None = None, axis: Axes | None = None
) -> Figure:
    """The worst error of every layer under exact elements, one row a layer from the input down, on a logarithmic axis.

    A dotted line shows the tolerance: what lies to the right of it is broken.

    Args:
        reports: name → report of a network; networks share the rows of layers that have the same name.
        depth: 1 draws the layers of the networks themselves, 2 theirs as well; all when None.
        axis: what is drawn on; a figure of its own when None.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: no report, or more than four.
    """
    if not 1 <= len(reports) <= len(_MARKS):
        raise ValueError(f"1 to {len(_MARKS)} reports can be told apart, but got {len(reports)}")
    shown = {name: _shown(report, depth) for name, report in reports.items()}
    rows = list(dict.fromkeys(layer for layers in shown.values() for layer in layers))
    rows.sort(key=_WHOLE.__eq__)  # the last one everywhere
    if axis is None:
        wide = 4 + 0.07 * max(map(len, rows))
        axis = empty_figure(wide, 0.9 + 0.24 * len(rows)).subplots()
    for (name, layers), colour, mark in zip(shown.items(), _COLOURS, _MARKS, strict=False):
        places = [rows.index(layer) for layer in layers]
        axis.plot(list(layers.values()), places, color=colour, marker=mark, linewidth=1, label=name)
    axis.set_xscale("log")
    axis.set_xlim(_FLOOR / 3, _MOST)
    axis.set_yticks(range(len(rows)), [row.removeprefix("the ") if row == _WHOLE else row for row in rows])
    axis.invert_yaxis()
    axis.axvline(max(report.tolerance for report in reports.values()), color="black", linewidth=0.8, linestyle=":")
    axis.grid(axis="x", alpha=0.3)
    axis.set_xlabel(f"relative error ({next(iter(reports.values())).symmetry.name}, exact elements)")
    axis.legend(loc="best")
    return axis.figure.figure  # the root, in every version of matplotlib


def _shown(report: LayerReport, depth: int | None) -> dict[str, float]:
    """Layer → error; the whole network stands last. What is not a number, or off the axis, reaches its end."""
    *layers, whole = report.shown(depth)
    errors = {layer: report.worst(layer) for layer in layers}
    return {name: min(max(error, _FLOOR), _MOST) for name, error in (errors | {_WHOLE: report.worst(whole)}).items()}
