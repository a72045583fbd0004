"""Where heads of attention look, and their encodings as every pose sees them."""

import copy
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from gsa.explore._packed import packed
from gsa.models import Network
from gsa.nn import SelfAttention, SpatialPool

__all__ = ["attended", "looking"]

_LIFTING, _LAST = "first", "last"


def attended(
    network: Network, inputs: Tensor, pixel: tuple[int, int] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits, and where heads with content look, of the first and of the last layer of attention.

    Args:
        network: of grey pictures.
        inputs: normalised pictures, [B, 1, H, W].
        pixel: row and column in the picture, whose heads of the first layer are asked; the middle when None. Of the
            last layer it is always the pixel in the middle of its map.

    Returns:
        [B, K]; and by "first" and "last", summed over the keys' poses, [B, heads, poses, U, V]. A layer without heads
        with content is left out: it looks at all pictures in the same way (`looking`).

    Raises:
        ValueError: a network without attention, or of coloured pictures; a pixel that is cropped away.
    """
    layers = {name: layer for name, (_, layer) in _ends(network, inputs).items() if layer.content_heads}
    found: dict[str, list[Tensor]] = {name: [] for name in layers}
    asked = {_LIFTING: pixel, _LAST: None}
    keeps = {name: partial(_keep, found[name], asked[name]) for name in layers}
    hooks = [layer.register_forward_pre_hook(keeps[name]) for name, layer in layers.items()]
    try:
        with torch.no_grad():
            logits = torch.cat([network(batch) for batch in inputs.split(240)])
    finally:
        for hook in hooks:
            hook.remove()
    return logits, {name: torch.cat(maps) for name, maps in found.items()}


def looking(network: Network, inputs: Tensor) -> dict[str, dict[str, Any]]:
    """The first and the last layer of attention, of each its heads with content, or all where it has none.

    A layer that looks by position alone has one attention for all pictures and all pixels away from the border, so it
    is kept once.

    Args:
        network: of grey pictures.
        inputs: some normalised pictures of its size, [B, 1, H, W].

    Returns:
        By "first" and "last" the "layer", number of "heads", what they look "by" ("position" or "content"), "encoding"
        ([heads, poses, U, V]: the logarithm of the attention where all pixels are alike, less its largest value; of
        heads that have places, −α |h⁻¹u − Δ|²), "cell", a key's side in pixels of the picture, "map", the side of its
        result, "crop", the pixels left out around it; and by position "attention", [heads, poses, U, V].

    Raises:
        ValueError: a network without attention, or of coloured pictures.
    """
    strides = prod(module.stride for module in network.modules() if isinstance(module, SpatialPool))
    described = {}
    for which, (name, layer) in _ends(network, inputs).items():
        given: list[Tensor] = []
        with torch.no_grad(), layer.register_forward_pre_hook(lambda _, args, given=given: given.append(args[0])):
            network(inputs)
        shown = _shown(layer)
        described[which] = {
            "layer": name,
            "heads": layer.num_heads - shown.start,
            "by": "content" if layer.content_heads else "position",
            "encoding": packed(_encoding(layer, given[0])[shown], bits=8),
            "cell": 1 if which == _LIFTING else strides,
            "map": given[0].shape[-1] - 2 * layer.crop,
            "crop": layer.crop,
        }
        if not layer.content_heads:
            described[which]["attention"] = packed(_middle(layer.attention(given[0][:1]))[0], bits=8)
    return described


def _ends(network: Network, inputs: Tensor) -> dict[str, tuple[str, SelfAttention]]:
    layers = [(name, layer) for name, layer in network.named_modules() if isinstance(layer, SelfAttention)]
    if not layers or layers[0][1].form != "lifting" or inputs.shape[1] != 1:
        raise ValueError(
            "the page shows networks of grey pictures whose first layer is lifting self-attention, such as digits_gsa "
            "and rotmnist_r4_sa"
        )
    return {_LIFTING: layers[0], _LAST: layers[-1]}


def _keep(found: list[Tensor], pixel: tuple[int, int] | None, layer: SelfAttention, given: tuple[Tensor, ...]) -> None:
    maps = layer.attention(given[0])[:, _shown(layer)]
    found.append(_middle(maps) if pixel is None else _at(maps, pixel, layer.crop))


def _shown(layer: SelfAttention) -> slice:
    """Its heads with content, or all where it has none."""
    return slice(layer.positional_heads if layer.content_heads else 0, None)


def _middle(maps: Tensor) -> Tensor:
    """Of the pixel in the middle: [B, heads, |H|, H, W, U, V] → [B, heads, |H|, U, V]."""
    return maps[:, :, :, maps.shape[3] // 2, maps.shape[4] // 2].detach()


def _at(maps: Tensor, pixel: tuple[int, int], crop: int) -> Tensor:
    """Of a pixel of what was given, [B, heads, |H|, H, W, U, V] → [B, heads, |H|, U, V]."""
    last = maps.shape[3] + crop - 1
    if not all(crop <= place <= last for place in pixel):
        raise ValueError(f"row and column of the pixel must be from {crop} to {last}, but got {pixel}")
    return maps[:, :, :, pixel[0] - crop, pixel[1] - crop].detach()


def _encoding(layer: SelfAttention, given: Tensor) -> Tensor:
    """What position adds to the scores: log-attention of the middle where all is as the mean is, [heads, poses, U, V].

    Away from the border, so that all of a window is seen; of global attention, what the middle sees to all sides.
    """
    layer = copy.deepcopy(layer).double()
    size = layer.neighbourhood.size
    side = given.shape[-1] if size is None else size + 2 * layer.crop
    axes = [axis for axis in range(given.ndim) if axis != 1]
    alike = given.double().mean(axes).view(1, -1, *[1] * (given.ndim - 2))
    with torch.no_grad():
        scores = _middle(layer.attention(alike.expand(1, -1, *given.shape[2:-2], side, side)))[0].log()
    if size is None:
        unseen = (scores.shape[-1] - 1) // 2 - (side - 1) // 2
        scores = scores[..., unseen : scores.shape[-1] - unseen, unseen : scores.shape[-1] - unseen]
    scores = scores - scores.flatten(1).amax(1)[:, None, None, None]  # a softmax sees differences only
    return scores.clamp_min(scores[scores.isfinite()].min()).float()  # outside a window: −∞
