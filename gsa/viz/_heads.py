"""Where the heads of attention look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor

from gsa.viz._figure import empty_figure, numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_heads"]

Heads = tuple[Tensor, Tensor, Tensor]


def draw_heads(layers: Mapping[str, tuple[Heads, Heads]]) -> Figure:
    """Every head as a disk around its offset, with a hand that points to the pose it prefers; at the start, and now.

    A disk ends where the weight has fallen to 1/e of that at its centre; the hand grows with the preference.

    Args:
        layers: name → heads at the start, and now: offsets [E, 2] in pixels (x right, y up), sharpness [E] in
            1/pixels², preferred direction [E, 2] or none, [E, 0].

    Returns:
        A matplotlib figure, one row a layer.
    """
    figure = empty_figure(6.4, 3.2 * len(layers))
    axes = figure.subplots(len(layers), 2, squeeze=False)
    for row, (name, both) in zip(axes, layers.items(), strict=True):
        reach = max(heads[0].abs().max().item() for heads in both) + 1
        for axis, heads, when in zip(row, both, ("at the start", "now"), strict=True):
            _draw(axis, heads)
            axis.set_xlim(-reach, reach)
            axis.set_ylim(-reach, reach)
            axis.set_aspect("equal")
            axis.set_title(f"{name}, {when}", fontsize=9)
            axis.set_xlabel("pixels from the one that asks", fontsize=8)
            axis.grid(alpha=0.3)
    return figure


def _draw(axis: Axes, heads: Heads) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Circle

    offsets, sharpness, directions = (numbers(tensor) for tensor in heads)
    for head, (x, y) in enumerate(offsets):
        colour = colormaps["hsv"](head / len(offsets))
        radius = sharpness[head] ** -0.5
        axis.add_patch(Circle((x, y), radius, facecolor=(*colour[:3], 0.12), edgecolor=colour))
        if directions.shape[1] == 2:
            dx, dy = 0.2 * directions[head]
            axis.plot([x, x + dx], [y, y + dy], color=colour, linewidth=1.5)
