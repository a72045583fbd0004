"""Positional encodings as every pose sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from gsa import groups
from gsa.groups import Group
from gsa.viz._figure import empty_figure, in_lines, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_encodings"]


def draw_encodings(spatial: Tensor, group: Group | str, channels: int = 4) -> Figure:
    """The acted encodings ρ_x(h⁻¹u), one row a pose h, one column a channel.

    Args:
        spatial: [|H|, U, V, d], values at every offset u.
        group: H.
        channels: how many of the d are drawn, the first and the last among them.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: an encoding of another shape.
    """
    group = groups.group(group)
    if spatial.ndim != 4 or len(spatial) != group.order:
        raise ValueError(f"spatial must be [{group.order}, U, V, d], but got {list(spatial.shape)}")
    columns = min(channels, spatial.shape[-1])
    figure = empty_figure(1.3 * columns + 0.8, 1.3 * group.order + 0.4)
    axes = figure.subplots(group.order, columns, squeeze=False)
    shown = [round(i * (spatial.shape[-1] - 1) / max(columns - 1, 1)) for i in range(columns)]
    for column, channel in enumerate(shown):
        limit = spatial[..., channel].abs().max().item() or 1.0  # where all is 0, too, 0 is white
        for pose in range(group.order):
            axis = axes[pose, column]
            values = numbers(spatial[pose, ..., channel])
            axis.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit)
            axis.set_xticks([])
            axis.set_yticks([])
            if column == 0:
                axis.set_ylabel(in_lines(f"pose {group.describe(pose)}"), fontsize=8)
        axes[0, column].set_title(f"channel {channel}", fontsize=9)
    return figure
