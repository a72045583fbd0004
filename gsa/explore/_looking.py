"""Where heads of attention look, and their encodings as every pose sees them."""

from math import prod
from typing import Any

import torch
from torch import Tensor

from gsa.explore._packed import packed
from gsa.models import Network
from gsa.nn import SelfAttention, SpatialPool

__all__ = ["looking"]


def looking(network: Network, inputs: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, dict[str, dict[str, Any]]]:
    """Heads of the first layer, which look by position alone, and those of the last one that look by content.

    Attention by position is the same for every picture and every pixel away from the border, so it is kept once:
    [heads, poses, U, V]. Attention by content is that of the pixel in the middle, summed over the keys' poses:
    [*axes, heads, poses, U, V].

    Args:
        network: as `digits_gsa` is made.
        inputs: normalised pictures of all states, [prod(axes), 1, H, W].
        axes: of the states.

    Returns:
        Logits, [prod(axes), K]; and "position" and "content", each with its "layer", number of "heads", "attention",
        "encoding" (−α |h⁻¹u − Δ|² of every head and pose, less its largest value: [heads, poses, U, V]), and "cell", a
        key's side in pixels of the picture.

    Raises:
        ValueError: a network made otherwise.
    """
    layers = {name: layer for name, layer in network.named_modules() if isinstance(layer, SelfAttention)}
    first, last = list(layers)[:1], list(layers)[-1:]
    if not first or layers[first[0]].content_heads or not layers[last[0]].content_heads or inputs.shape[1] != 1:
        raise ValueError(
            "the page shows networks of grey pictures whose first attention is by position and whose last has heads "
            "with content, as those of digits_gsa"
        )
    positions = _middle(layers[first[0]].attention(inputs[:1]))[0]
    found: list[Tensor] = []
    hook = layers[last[0]].register_forward_pre_hook(lambda layer, given: found.append(_by_content(layer, given[0])))
    with torch.no_grad(), hook:
        logits = torch.cat([network(batch) for batch in inputs.split(240)])
    contents = torch.cat(found).unflatten(0, axes)
    strides = prod(module.stride for module in network.modules() if isinstance(module, SpatialPool))
    return logits, {
        "position": _kept(first[0], layers[first[0]], positions, 0, 1),
        "content": _kept(last[0], layers[last[0]], contents, layers[last[0]].positional_heads, strides),
    }


def _by_content(layer: SelfAttention, features: Tensor) -> Tensor:
    """Attention of the heads with content: [B, heads, |H|, U, V]."""
    return _middle(layer.attention(features))[:, layer.positional_heads :]


def _middle(maps: Tensor) -> Tensor:
    """Of the pixel in the middle: [B, heads, |H|, H, W, U, V] → [B, heads, |H|, U, V]."""
    return maps[:, :, :, maps.shape[3] // 2, maps.shape[4] // 2].detach()


def _kept(name: str, layer: SelfAttention, attention: Tensor, start: int, cell: int) -> dict[str, Any]:
    side = attention.shape[-1]
    scores = layer.encoding.position_scores(layer.neighbourhood, side, side)[start:].mean(2)
    highest = scores.flatten(1).amax(1)[:, None, None, None]  # a softmax sees differences only
    return {
        "layer": name,
        "heads": attention.shape[-4],
        "cell": cell,
        "attention": packed(attention, bits=8),
        "encoding": packed((scores - highest).detach(), bits=8),
    }
