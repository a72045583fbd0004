"""One picture in every pose, and what a network makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy
import torch
from torch import Tensor

from gsa import groups
from gsa.groups import Group
from gsa.viz._figure import as_shown, check_picture, empty_figure, in_lines, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_orbit"]

_MOST = 8  # rows and columns that can still be read


def draw_orbit(
    image: Tensor,
    features: Callable[[Tensor], Tensor],
    networks: dict[str, Callable[[Tensor], Tensor]],
    group: Group | str,
    channel: int = 0,
) -> Figure:
    """Draw the orbit of a picture under a group: the picture, a feature in every pose, the logits.

    In an equivariant layer, turning the picture turns every map and moves it to the next pose; in an invariant
    network the logits stay as they are.

    Args:
        image: [C, H, W].
        features: an equivariant layer or network part, [B, C, H, W] → [B, C′, poses, H, W], or [B, C′, H, W], as of one
            pose.
        networks: names and networks, [B, C, H, W] → [B, K]; one row of logits each.
        group: whose elements are the columns; of more than eight elements or poses, eight at most are shown.
        channel: of the feature.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: an image or features of other dimensions, a channel that is not there.
    """
    group = groups.group(group)
    image = torch.as_tensor(image)
    check_picture(image)
    with torch.no_grad():
        elements = range(0, group.order, -(-group.order // _MOST))
        orbit = {g: group.act(image[None], g) for g in elements}
        maps = {g: numbers(_maps(features(moved), channel)) for g, moved in orbit.items()}
        logits = {
            name: {g: numbers(network(moved)[0]) for g, moved in orbit.items()} for name, network in networks.items()
        }
    count = len(maps[0])
    poses = range(0, count, -(-count // _MOST))
    rows = 1 + len(poses) + len(networks)
    figure = empty_figure(1.3 * len(elements) + 1.2, 1.25 * rows + 0.4)
    axes = figure.subplots(rows, len(elements), squeeze=False)

    low, high = min(m.min() for m in maps.values()), max(m.max() for m in maps.values())
    limit = max(-low, high) or 1.0  # where all is 0, too, 0 is white
    # values of one sign would fill half a diverging scale, and hide what differs between them
    scale = {"cmap": "viridis", "vmin": low, "vmax": high}
    if low <= 0 <= high:
        scale = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    for column, g in enumerate(elements):
        axes[0, column].imshow(as_shown(orbit[g][0]), cmap="gray")
        axes[0, column].set_title(in_lines(group.describe(g)), fontsize=9)
        for row, pose in enumerate(poses, start=1):
            drawn = axes[row, column].imshow(maps[g][pose], **scale)
        for row, values in enumerate(logits.values(), start=1 + len(poses)):
            axes[row, column].bar(range(len(values[g])), values[g], color="C0" if row == 1 + len(poses) else "C7")
            axes[row, column].axhline(0, color="black", linewidth=0.6)
            axes[row, column].set_box_aspect(1)
            axes[row, column].set_ylim(*_limits(list(values.values())))

    are_poses = count == group.order
    names = [in_lines(f"pose {group.describe(h)}") if are_poses else "feature" for h in poses]
    for row, label in enumerate(["input", *names, *networks]):
        axes[row, 0].set_ylabel(label, fontsize=8)
        for axis in axes[row]:
            axis.set_xticks([])
            axis.set_yticks([])
    bar = figure.colorbar(drawn, ax=axes, aspect=10 * rows, shrink=len(poses) / rows)
    bar.ax.set_title(f"channel {channel}", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    return figure


def _maps(features: Tensor, channel: int) -> Tensor:
    """Those of one picture and channel: [poses, H, W]."""
    if features.ndim not in (4, 5):
        raise ValueError(
            f"features must be [B, C, poses, H, W], or [B, C, H, W] as of one pose, but got {list(features.shape)}"
        )
    if not 0 <= channel < features.shape[1]:
        raise ValueError(f"channel must be from 0 to {features.shape[1] - 1}, but got {channel}")
    return features[0, channel] if features.ndim == 5 else features[0, channel, None]


def _limits(values: list[numpy.ndarray]) -> tuple[float, float]:
    low, high = min(0.0, *(v.min() for v in values)), max(0.0, *(v.max() for v in values))
    return low - 0.05 * (high - low), high + 0.05 * (high - low)
