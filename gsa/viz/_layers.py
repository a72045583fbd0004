"""Where a network loses a symmetry, layer by layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gsa.viz._figure import empty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gsa.symmetry import LayerReport

__all__ = ["draw_layers"]

_LEAST, _MOST = 1e-17, 4.0  # ends of the axis; no error at all cannot stand on a logarithmic one
_STYLES: dict[str, dict[str, Any]] = {
    "exact": {"facecolor": "C0"},
    "broken": {"facecolor": "C3", "hatch": "//", "edgecolor": "white", "linewidth": 0},
    "sampled": {"facecolor": "C7", "alpha": 0.6},
}


def draw_layers(report: LayerReport, depth: int | None = None) -> Figure:
    """The worst error of every layer as a bar on a logarithmic axis: exact, broken and sampled elements apart.

    A dotted line shows the tolerance.

    Args:
        report: of the forward or of the backward pass.
        depth: of the layers, as in `LayerReport.table`; the first broken one is drawn at any depth.

    Returns:
        A matplotlib figure; layers are read from the top down. What is not a number reaches the end of the axis.
    """
    first = report.first_broken[0] if report.first_broken else None
    deep = report.shown(depth)
    layers = [name for name in report.errors if name in deep or name == first]
    figure = empty_figure(7, 0.24 * len(layers) + 1.4)
    axis, bars = figure.subplots(), {}
    for row, layer in enumerate(layers):
        errors = report.errors[layer]
        exact = [error for g, error in errors.items() if g in report.symmetry.exact]
        sampled = [error for g, error in errors.items() if g not in report.symmetry.exact]
        for kind, values in (("sampled", sampled), ("exact", exact)):
            if values:
                worst = max(error if math.isfinite(error) else _MOST for error in values)
                kind = "broken" if kind == "exact" and not all(e <= report.tolerance for e in values) else kind
                thick = 0.8 if kind == "sampled" else 0.5
                bars[kind] = axis.barh(
                    row, max(worst, _LEAST) - _LEAST / 2, thick, left=_LEAST / 2, label=kind, **_STYLES[kind]
                )
    axis.axvline(report.tolerance, color="black", linewidth=0.8, linestyle=":")
    axis.set_xscale("log")
    axis.set_xlim(_LEAST / 2, _MOST)
    axis.set_yticks(range(len(layers)), [f"{name} ←" if name == first else name for name in layers], fontsize=8)
    axis.set_ylim(len(layers) - 0.5, -0.5)
    what = "gradients" if report.backward else "outputs"
    axis.set_xlabel(f"relative error of {what} under {report.symmetry.name}", fontsize=9)
    handles = [bars[kind] for kind in _STYLES if kind in bars]
    axis.legend(handles=handles, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)
    return figure
