"""One picture in every pose, and what a network makes of it."""

from collections.abc import Callable

import numpy
import torch
from torch import Tensor

from gsa.groups import Group

__all__ = ["draw_orbit"]


def draw_orbit(
    image: Tensor,
    features: Callable[[Tensor], Tensor],
    networks: dict[str, Callable[[Tensor], Tensor]],
    group: Group,
    channel: int = 0,
):
    """Draw the orbit of a picture under a group: the picture, a feature in every pose, the logits.

    In an equivariant layer, turning the picture turns every map and moves it to the next pose; in an invariant
    network the logits stay as they are.

    Args:
        image: [C, H, W].
        features: an equivariant layer or network part, [B, C, H, W] → [B, C′, |H|, H, W].
        networks: names and networks, [B, C, H, W] → [B, K]; one row of logits each.
        group: whose elements are the columns.
        channel: of the feature.

    Returns:
        A matplotlib figure.
    """
    from matplotlib.figure import Figure

    order = group.order
    rows = 1 + order + len(networks)
    figure = Figure(figsize=(1.5 * order + 1.2, 1.25 * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, order, squeeze=False)
    with torch.no_grad():
        orbit = [group.act(image[None], g) for g in range(order)]
        maps = [features(moved)[0, channel].numpy(force=True) for moved in orbit]
        logits = {name: [network(moved)[0].numpy(force=True) for moved in orbit] for name, network in networks.items()}

    limit = max(abs(m).max() for m in maps)
    for g in range(order):
        axes[0, g].imshow(orbit[g][0].movedim(0, -1).squeeze(-1).numpy(force=True), cmap="gray")
        axes[0, g].set_title(group.describe(g), fontsize=9)
        for pose in range(order):
            axes[1 + pose, g].imshow(maps[g][pose], cmap="RdBu_r", vmin=-limit, vmax=limit)
        for row, values in enumerate(logits.values(), start=1 + order):
            axes[row, g].bar(range(len(values[g])), values[g], color="C0" if row == 1 + order else "C7")
            axes[row, g].set_ylim(*_limits(values))

    labels = ["input", *(f"pose {group.describe(h)}" for h in range(order)), *networks]
    for row, label in enumerate(labels):
        axes[row, 0].set_ylabel(label, fontsize=8)
        for axis in axes[row]:
            axis.set_xticks([])
            axis.set_yticks([])
    return figure


def _limits(values: list[numpy.ndarray]) -> tuple[float, float]:
    low, high = min(0.0, *(v.min() for v in values)), max(0.0, *(v.max() for v in values))
    return low - 0.05 * (high - low), high + 0.05 * (high - low)
