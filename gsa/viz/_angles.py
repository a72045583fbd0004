"""What a network makes of pictures at every angle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gsa import groups
from gsa.groups import Group
from gsa.viz._figure import empty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_angles"]


def draw_angles(network: Callable[[Tensor], Tensor], pictures: Tensor, labels: Tensor, turns: Group | str) -> Figure:
    """Accuracy, and the mean logits of the right and of the best wrong class, against the angle of the input.

    Args:
        network: [B, C, H, W] → logits [B, K].
        pictures: [B, C, H, W].
        labels: int64 [B].
        turns: rotations R<n>; the angles are its elements. Quarter turns move pixels, others sample between them.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: a group with mirrors, which are no angles.
    """
    turns = groups.group(turns)
    if turns.mirrored:
        raise ValueError(f"turns must be a group of rotations, such as R24, but got {turns.name}")
    pictures, labels = torch.as_tensor(pictures), torch.as_tensor(labels)
    accuracy, right, wrong = [], [], []
    with torch.no_grad():
        for element in range(turns.order):
            logits = network(turns.act(pictures, element))
            accuracy.append((logits.argmax(1) == labels).float().mean().item())
            right.append(logits.gather(1, labels[:, None]).mean().item())
            others = logits.scatter(1, labels[:, None], -torch.inf)
            wrong.append(others.amax(1).mean().item())

    degrees = [360 * element / turns.order for element in range(turns.order + 1)]
    figure = empty_figure(8, 3)
    left, second = figure.subplots(1, 2)
    left.plot(degrees, [*accuracy, accuracy[0]], marker=".")
    left.set_ylim(0, 1.02)
    left.set_title(f"accuracy on {len(pictures)} pictures", fontsize=10)
    second.plot(degrees, [*right, right[0]], marker=".", label="right class")
    second.plot(degrees, [*wrong, wrong[0]], marker=".", color="C7", label="best wrong class")
    second.set_title("mean logit", fontsize=10, loc="left")
    second.legend(loc="lower right", bbox_to_anchor=(1, 1), fontsize=8, ncols=2, frameon=False, borderaxespad=0.2)
    for axis in (left, second):
        axis.set_xlabel("turned further by")
        axis.set_xticks(range(0, 361, 90), [f"{angle}°" for angle in range(0, 361, 90)])
        axis.grid(alpha=0.3)
    return figure
