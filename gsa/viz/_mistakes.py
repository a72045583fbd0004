"""Pictures that a network takes for something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gsa.viz._figure import as_shown, empty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_mistakes"]

_COLUMNS = 4


def draw_mistakes(pictures: Tensor, captions: Sequence[str]) -> Figure:
    """Pictures side by side, each with its caption.

    Args:
        pictures: [N, C, H, W] in [0, 1]; other than three channels are shown by their mean.
        captions: N.

    Returns:
        A matplotlib figure.
    """
    columns = min(max(len(pictures), 1), _COLUMNS)
    rows = max(-(-len(pictures) // columns), 1)
    figure = empty_figure(2.2 * columns, 2.5 * rows)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis in axes:
        axis.set_axis_off()
    for axis, picture, caption in zip(axes, map(torch.as_tensor, pictures), captions, strict=False):
        axis.imshow(as_shown(picture.clamp(0, 1)), cmap="gray", vmin=0, vmax=1)
        axis.set_title(caption, fontsize=8)
    return figure
