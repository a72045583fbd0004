"""What one pixel attends to, in every pose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gsa import groups
from gsa.groups import Group
from gsa.viz._figure import as_shown, check_picture, empty_figure, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_attention"]


def draw_attention(image: Tensor, attention: Tensor, pixel: tuple[int, int], group: Group | str) -> Figure:
    """The attention of one pixel on the picture around it, one panel a pose.

    Args:
        image: [C, H, W] in [0, 1].
        attention: [|H|, U, V], weights on the window centred on the pixel, in maps of `gsa.nn.record_attention`
            `maps[layer][picture, head, :, row, column]`.
        pixel: its row and column.
        group: H.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: an image or attention of another shape, a pixel outside the image.
    """
    group = groups.group(group)
    image, attention = torch.as_tensor(image), torch.as_tensor(attention)
    check_picture(image)
    if attention.ndim != 3 or len(attention) != group.order:
        raise ValueError(
            f"attention must be of one pixel in {group.order} poses, [{group.order}, U, V], but got "
            f"{list(attention.shape)}"
        )
    if not all(0 <= place < side for place, side in zip(pixel, image.shape[1:], strict=True)):
        raise ValueError(f"pixel must lie on the {image.shape[1]}×{image.shape[2]} image, but got {pixel}")
    columns = min(group.order, 8)
    rows = -(-group.order // columns)
    figure = empty_figure(1.6 * columns + 0.3, 1.8 * rows + 0.2)
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    reach_down, reach_right = (side / 2 for side in attention.shape[1:])
    row, column = pixel
    window = (column - reach_right, column + reach_right, row + reach_down, row - reach_down)
    most = attention.max().item()
    for axis in axes:
        axis.set_axis_off()
    for pose in range(group.order):
        axis = axes[pose]
        axis.imshow(as_shown(image), cmap="gray", vmin=0, vmax=1)
        axis.imshow(numbers(attention[pose]), cmap="inferno", vmin=0, vmax=most, alpha=0.6, extent=window)
        axis.plot(column, row, "c+", markersize=8)
        axis.set_xlim(-0.5, image.shape[-1] - 0.5)
        axis.set_ylim(image.shape[-2] - 0.5, -0.5)
        axis.set_title(f"pose {group.describe(pose)}", fontsize=9)
    return figure
