"""What one pixel attends to, in every pose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gsa import groups
from gsa.groups import Group
from gsa.viz._figure import as_shown, check_picture, empty_figure, in_lines, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_attention"]


def draw_attention(image: Tensor, attention: Tensor, pixel: tuple[int, int], group: Group | str) -> Figure:
    """The picture with a frame around what one pixel looks at, and its attention there, one panel a pose.

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
    from matplotlib.patches import Rectangle

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
    figure = empty_figure(1.6 * (columns + 1) + 0.9, 1.8 * rows + 0.2)
    axes = figure.subplots(rows, columns + 1, squeeze=False)
    whole, panels = axes[0, 0], list(axes[:, 1:].flat)
    row, column = pixel
    tall, wide = attention.shape[1:]
    left, top = column - wide / 2, row - tall / 2
    window = (left, left + wide, top + tall, top)
    most = attention.max().item()
    for axis in axes.flat:
        axis.set_axis_off()
    whole.imshow(as_shown(image), cmap="gray", vmin=0, vmax=1)
    for colour, width in (("black", 3), ("cyan", 1.2)):  # seen on any picture
        whole.add_patch(Rectangle((left, top), wide, tall, fill=False, edgecolor=colour, linewidth=width))
    whole.set_title("picture", fontsize=9)
    for pose in range(group.order):
        axis = panels[pose]
        shown = axis.imshow(numbers(attention[pose]), cmap="inferno", vmin=0, vmax=most, extent=window)
        axis.plot(column, row, "c+", markersize=8)
        axis.set_xlim(max(left, -0.5), min(left + wide, image.shape[-1] - 0.5))
        axis.set_ylim(min(top + tall, image.shape[-2] - 0.5), max(top, -0.5))
        axis.set_title(in_lines(f"pose {group.describe(pose)}"), fontsize=9)
    figure.colorbar(shown, ax=axes, label="attention", aspect=12 * rows)
    return figure
