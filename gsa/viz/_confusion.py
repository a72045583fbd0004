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
_CELL, _LETTER, _DIGIT = 0.25, 0.085, 0.06  # inches, at least: of a cell, of a letter of a name, of a digit of a count


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
    shown = list(map(str, range(classes) if names is None else names))
    letters, digits = max(map(len, shown), default=1), len(str(int(counts.max())))
    cell = max(_CELL, _DIGIT * digits, 3 / max(classes, 1)) if classes <= _NAMED else 15 / classes
    upright = letters * _LETTER > cell
    side, margin = cell * classes, 0.5 + (letters * _LETTER if classes <= _NAMED else 0.3)
    figure = empty_figure(side + margin + 1, side + (margin if upright else 0.8))
    axis = figure.subplots()
    image = axis.imshow(numbers(shares), cmap="Blues", vmin=0, vmax=1)
    scale = axis.inset_axes((1 + 0.15 / side, 0, 0.15 / side, 1))  # as high as the matrix
    figure.colorbar(image, cax=scale, label="share of the true class")
    if classes <= _NAMED:
        for true, predicted in torch.cartesian_prod(torch.arange(classes), torch.arange(classes)).tolist():
            if counts[true, predicted]:
                color = "white" if shares[true, predicted] > 0.5 else "black"
                text = str(int(counts[true, predicted]))
                size = min(10, 72 * 0.8 * cell / (0.64 * max(digits, 2)))
                axis.text(predicted, true, text, ha="center", va="center", fontsize=size, color=color)
        axis.set_xticks(range(classes), shown, rotation=90 if upright else 0)
        axis.set_yticks(range(classes), shown)
    axis.set_xlabel("predicted class")
    axis.set_ylabel("true class")
    return figure
