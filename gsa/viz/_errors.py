"""Equivariance errors, element by element."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gsa.viz._figure import empty_figure, in_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_errors"]


def draw_errors(before: dict[str, dict], after: dict[str, dict]) -> Figure:
    """Relative equivariance error of each element before and after training, on a logarithmic axis.

    A dotted line at 1e-5 shows what exact elements stay below in float32.

    Args:
        before, after: name of an element → {"error": float, "exact": bool}.

    Returns:
        A matplotlib figure.
    """
    figure = empty_figure(max(5.0, 0.72 * len(after) + 1.2), 3)
    axis = figure.subplots()
    floor, most = 1e-9, 4.0  # the identity has no error at all, which a logarithm cannot show
    for offset, errors, label, color in ((-0.2, before, "before training", "C7"), (0.2, after, "after", "C0")):
        heights = [_height(entry["error"], floor, most) for entry in errors.values()]
        axis.bar([i + offset for i in range(len(errors))], heights, 0.4, label=label, color=color)
        for i, entry in enumerate(errors.values()):
            if not 0 < entry["error"] < math.inf:  # neither can be read off a logarithmic axis
                told = f"{entry['error']:g}"
                axis.text(i + offset, heights[i], told, ha="center", va="bottom" if told == "0" else "top", fontsize=7,
                          color="black" if told == "0" else "white")  # fmt: skip
    marks = [f"{in_lines(name)}\n{'exact' if entry['exact'] else 'sampled'}" for name, entry in after.items()]
    axis.set_xticks(range(len(after)), marks, fontsize=8)
    axis.set_yscale("log")
    axis.set_ylim(floor / 2, most)
    axis.set_ylabel("relative error of the logits")
    line = axis.axhline(1e-5, color="black", linewidth=0.8, linestyle=":", label="exact ones stay below (float32)")
    figure.legend(handles=[*axis.containers, line], loc="outside upper right", ncols=3, fontsize=8, frameon=False)
    return figure


def _height(error: float, floor: float, most: float) -> float:
    """What is not a number reaches the end of the axis."""
    return floor / 2 if error == 0 else max(error, floor) if math.isfinite(error) else most
