"""Where heads of attention look, and their encodings as every pose sees them."""

from math import prod
from typing import Any

import torch
from torch import Tensor

from gsa.explore._packed import packed
from gsa.models import Network
from gsa.nn import SelfAttention, SpatialPool

__all__ = ["attended", "looking"]


def attended(network: Network, inputs: Tensor) -> tuple[Tensor, Tensor, int]:
    """Logits, and the attention by content of the last layer.

    Args:
        network: as `digits_gsa` is made.
        inputs: normalised pictures, [B, 1, H, W].

    Returns:
        [B, K]; that of the pixel in the middle, summed over the keys' poses, [B, heads, poses, U, V]; and the side of
        the map that it is in the middle of.

    Raises:
        ValueError: a network made otherwise.
    """
    last = _first_and_last(network, inputs)[1][1]
    found: list[Tensor] = []
    hook = last.register_forward_pre_hook(lambda layer, given: found.append(layer.attention(given[0])))
    with torch.no_grad(), hook:
        logits = torch.cat([network(batch) for batch in inputs.split(240)])
    return logits, torch.cat([_middle(maps) for maps in found])[:, last.positional_heads :], found[0].shape[3]


def looking(network: Network, inputs: Tensor, contents: Tensor, side: int) -> dict[str, dict[str, Any]]:
    """Heads of the first layer, which look by position alone, and those of the last one that look by content.

    Attention by position is the same for every picture and every pixel away from the border, so it is kept once.

    Args:
        network: as `digits_gsa` is made.
        inputs: any normalised pictures of its size, [B, 1, H, W].
        contents: what `attended` found, with any axes in front.
        side: of the last map, as `attended` found it.

    Returns:
        "position" and "content", each with its "layer", number of "heads", "attention" ([heads, poses, U, V], with the
        axes of `contents` in front), "encoding" (−α |h⁻¹u − Δ|² of every head and pose, less its largest value:
        [heads, poses, U, V]), "cell", a key's side in pixels of the picture, and "map", the side of the last map.

    Raises:
        ValueError: a network made otherwise.
    """
    (first_name, first), (last_name, last) = _first_and_last(network, inputs)
    positions = _middle(first.attention(inputs[:1]))[0]
    strides = prod(module.stride for module in network.modules() if isinstance(module, SpatialPool))
    return {
        "position": _kept(first_name, first, positions, 0) | {"cell": 1},
        "content": _kept(last_name, last, contents, last.positional_heads) | {"cell": strides, "map": side},
    }


def _first_and_last(network: Network, inputs: Tensor) -> list[tuple[str, SelfAttention]]:
    layers = [(name, layer) for name, layer in network.named_modules() if isinstance(layer, SelfAttention)]
    if not layers or layers[0][1].content_heads or not layers[-1][1].content_heads or inputs.shape[1] != 1:
        raise ValueError(
            "the page shows networks of grey pictures whose first attention is by position and whose last has heads "
            "with content, as those of digits_gsa"
        )
    return [layers[0], layers[-1]]


def _middle(maps: Tensor) -> Tensor:
    """Of the pixel in the middle: [B, heads, |H|, H, W, U, V] → [B, heads, |H|, U, V]."""
    return maps[:, :, :, maps.shape[3] // 2, maps.shape[4] // 2].detach()


def _kept(name: str, layer: SelfAttention, attention: Tensor, start: int) -> dict[str, Any]:
    side = attention.shape[-1]
    scores = layer.encoding.position_scores(layer.neighbourhood, side, side)[start:].mean(2)
    highest = scores.flatten(1).amax(1)[:, None, None, None]  # a softmax sees differences only
    return {
        "layer": name,
        "heads": attention.shape[-4],
        "attention": packed(attention, bits=8),
        "encoding": packed((scores - highest).detach(), bits=8),
    }
