"""Which classes a network takes for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gsa.viz._figure import empty_figure, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_confusion"]

_NAMED = 60  # classes whose names and counts can still be read
_CELL = 0.25  # inches


def draw_confusion(counts: Tensor, names: Sequence[str] | None = None) -> Figure:
    """The confusion matrix, each row as shares of its class; up to 60 classes are named.

    Args:
        counts: int [K, K], true class by predicted class.
        names: of the classes, as matplotlib takes them: what is between two $ is a formula; their numbers when None.

    Returns:
        A matplotlib figure.
    """
    counts, classes = torch.as_tensor(counts), len(counts)  # scikit-learn gives arrays
    shares = counts / counts.sum(1, keepdim=True).clamp_min(1)
    side = max(4.5, _CELL * min(classes, _NAMED) + 1.5)
    figure = empty_figure(side + 0.5, side)
    axis = figure.subplots()
    image = axis.imshow(numbers(shares), cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, label="share of the true class")
    if classes <= _NAMED:
        for true, predicted in torch.cartesian_prod(torch.arange(classes), torch.arange(classes)).tolist():
            if counts[true, predicted]:
                color = "white" if shares[true, predicted] > 0.5 else "black"
                text = str(int(counts[true, predicted]))
                axis.text(
                    predicted, true, text, ha="center", va="center", fontsize=7 if classes <= 20 else 5, color=color
                )
        shown = list(map(str, range(classes) if names is None else names))
        axis.set_xticks(range(classes), shown, rotation=90 if max(map(len, shown)) > 2 else 0)
        axis.set_yticks(range(classes), shown)
    axis.set_xlabel("predicted class")
    axis.set_ylabel("true class")
    return figure
