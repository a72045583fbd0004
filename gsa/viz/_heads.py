"""Where the heads of attention look."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch.nn.functional as F
from torch import Tensor, nn

from gsa.viz._figure import empty_figure, numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_heads"]


def draw_heads(network: nn.Module) -> Figure:
    """Every head as a disk around its offset, with a hand that points to the pose it prefers; at the start, and now.

    A disk ends where the weight has fallen to 1/e of that at its centre; the hand grows with the preference.

    Args:
        network: or a layer, with heads that have places (`gsa.encodings.QuadraticEncoding`).

    Returns:
        A matplotlib figure, one row a layer.

    Raises:
        ValueError: a network without such heads.
    """
    from matplotlib.ticker import MultipleLocator

    layers = _placed(network)
    if not layers:
        kind = type(network).__name__
        raise ValueError(f"heads must have places, as those of encoding=quadratic have, but {kind} has none such")
    figure = empty_figure(6.4, 3.2 * len(layers))
    axes = figure.subplots(len(layers), 2, squeeze=False)
    for row, (name, now) in zip(axes, layers.items(), strict=True):
        start = copy.deepcopy(now).cpu()
        start.reset_parameters()
        reach = max(encoding.offset.abs().max().item() for encoding in (start, now)) + 1
        for axis, encoding, when in zip(row, (start, now), ("at the start", "now"), strict=True):
            _draw(axis, encoding)
            axis.set_xlim(-reach, reach)
            axis.set_ylim(-reach, reach)
            axis.set_aspect("equal")
            axis.set_title(f"{name}, {when}", fontsize=9)
            axis.set_xlabel("pixels from the one that asks", fontsize=8)
            axis.xaxis.set_major_locator(MultipleLocator(max(1, round(reach / 3))))
            axis.yaxis.set_major_locator(MultipleLocator(max(1, round(reach / 3))))
            axis.grid(alpha=0.3)
    hands = any(_directions(encoding).shape[1] == 2 for encoding in layers.values())
    told = "a disc is a head: it ends where attention has fallen to 1/e" + (
        "\na hand points to the rotation that the head prefers" * hands
    )
    figure.suptitle(told, fontsize=8)
    return figure


def _placed(network: nn.Module) -> dict[str, Any]:
    """Layer → the encoding that its heads have places by, of all layers with such."""
    found = {name: getattr(layer, "encoding", None) for name, layer in network.named_modules()}
    placed = {name: encoding for name, encoding in found.items() if getattr(encoding, "places_heads", False)}
    return {name or type(network).__name__: encoding for name, encoding in placed.items()}


def _directions(encoding: Any) -> Tensor:
    """The preferred direction among rotations, [E, 2]; that among two has no sine, and there is none among one."""
    among_rotations = encoding.preference.detach()[:, : min(encoding.group.rotations - 1, 2)]
    return F.pad(among_rotations, (0, among_rotations.shape[1] % 2))


def _draw(axis: Axes, encoding: Any) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Circle

    offsets, sharpness, directions = map(numbers, (encoding.offset, encoding.sharpness, _directions(encoding)))
    for head, (x, y) in enumerate(offsets):
        colour = colormaps["hsv"](head / len(offsets))
        radius = sharpness[head] ** -0.5
        axis.add_patch(Circle((x, y), radius, facecolor=(*colour[:3], 0.12), edgecolor=colour))
        if directions.shape[1] == 2:
            dx, dy = 0.2 * directions[head]
            axis.plot([x, x + dx], [y, y + dy], color=colour, linewidth=1.5)
