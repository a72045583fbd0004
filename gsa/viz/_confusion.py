"""Which classes a network takes for which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_confusion"]


def draw_confusion(counts: Tensor) -> Figure:
    """The confusion matrix, each row as shares of its class.

    Args:
        counts: int [K, K], true class by predicted class.

    Returns:
        A matplotlib figure.
    """
    from matplotlib.figure import Figure

    classes = len(counts)
    shares = counts / counts.sum(1, keepdim=True).clamp_min(1)
    figure = Figure(figsize=(5, 4.5), layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(shares.numpy(force=True), cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, label="share of the true class")
    if classes <= 20:
        for true, predicted in torch.cartesian_prod(torch.arange(classes), torch.arange(classes)).tolist():
            if counts[true, predicted]:
                color = "white" if shares[true, predicted] > 0.5 else "black"
                text = str(int(counts[true, predicted]))
                axis.text(predicted, true, text, ha="center", va="center", fontsize=7, color=color)
        axis.set_xticks(range(classes))
        axis.set_yticks(range(classes))
    axis.set_xlabel("predicted class")
    axis.set_ylabel("true class")
    return figure
