"""What a network makes of pictures turned, mirrored and shifted, computed once so that a slider can pick from it."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gsa.explore._looking import attended, looking
from gsa.explore._packed import packed
from gsa.explore._strokes import DIGITS, drawn
from gsa.groups import group
from gsa.models import Network
from gsa.nn import SelfAttention
from gsa.saved import Saved
from gsa.symmetry import relative_error

__all__ = ["SHIFTS", "described", "lifted_feature", "telling_channels", "turning"]

SHIFTS = (-2, -1, 0, 1, 2)  # in pixels, down as to the right
_MARGIN = 2
_CHANNELS = 2  # of the lifted feature


def turning(saved: Saved, plain: Saved, steps: int = 72, digits: Sequence[str] = tuple(DIGITS)) -> dict[str, Any]:
    """Pictures in every state, the lifted feature, attention, class probabilities, and the change of the logits.

        error(state) = ‖F(L x) − F(x)‖ / ‖F(x)‖

    A state is a digit that is mirrored or not, then turned counter-clockwise, then shifted down and to the right.
    Everything is computed in float32. Pictures and lifted features are kept once for all shifts, with a margin of two
    pixels, which are dark: what is shown of them is a window.

    Args:
        saved: a trained network of grey pictures that is made as `digits_gsa` is: attention by position first, which
            sees no border, heads with content last.
        plain: another one, of the same pictures.
        steps: angles in a full turn; a multiple of 4.
        digits: of `gsa.explore._strokes.DIGITS`.

    Returns:
        Plain values for JSON: names and axes; packed "picture" [digits, 2, steps, H + 4, W + 4], "lifted" [digits, 2,
        steps, channels, poses, H′ + 4, W′ + 4], "probabilities" [networks, digits, 2, shifts, shifts, steps, K] and
        "errors", of the same axes but K; "layers" of `looking`, the last one with its attention in every state.

    Raises:
        ValueError: steps that are no multiple of 4; networks made otherwise, or of different pictures.
    """
    network, known = saved.network, saved.pictures
    if steps < 4 or steps % 4:
        raise ValueError(f"steps must be a multiple of 4, so that quarter turns are among them, but got {steps}")
    if (known.image_size, known.classes) != (plain.pictures.image_size, plain.pictures.classes):
        raise ValueError(
            f"both networks must know the same pictures and classes, but got {known.data} of {known.image_size} pixels "
            f"and {len(known.classes)} classes, and {plain.pictures.data} of {plain.pictures.image_size} and "
            f"{len(plain.pictures.classes)}"
        )
    turned = torch.cat([_turned(drawn(digit, known.image_size), steps) for digit in digits])
    pictures = _shifted(turned, steps)
    axes = (len(digits), 2, len(SHIFTS), len(SHIFTS), steps)
    layers = looking(network, known.normalise(pictures[:1]))
    if [layer["by"] for layer in layers.values()] != ["position", "content"]:
        raise ValueError(
            "the page without a server shows networks whose first attention is by position and whose last has heads "
            "with content, as those of digits_gsa; the served page shows others, too"
        )
    logits, contents = attended(network, known.normalise(pictures))
    layers["last"]["attention"] = packed(contents["last"].unflatten(0, axes), bits=8)
    with torch.no_grad():
        others = _batches(plain.network, plain.pictures.normalise(pictures))
        wide = F.pad(turned, [_MARGIN] * 4)
        lifted = _batches(lambda x: lifted_feature(network, x), known.normalise(wide)).unflatten(
            0, (len(digits), 2, steps)
        )
        _check_windows(lifted, lifted_feature(network, known.normalise(pictures[:1])))
    channels = telling_channels(lifted[:, 0, 0, ..., _MARGIN:-_MARGIN, _MARGIN:-_MARGIN])
    both = torch.stack((logits, others)).unflatten(1, axes)
    return described(saved, digits, steps) | {
        "channels": channels,
        "errors": packed(_changes(both)),
        "feature_errors": [_feature_errors(digit, network, steps) for digit in lifted[:, 0]],
        "picture": packed(wide[:, 0].unflatten(0, (len(digits), 2, steps)), bits=8),
        "lifted": packed(lifted[:, :, :, channels], bits=8),
        "probabilities": packed(both.softmax(-1), bits=8),
        "layers": layers,
    }


def described(saved: Saved, digits: Sequence[str], steps: int, every: int = 1) -> dict[str, Any]:
    """Names and axes, as the page shows them.

    "turns" are the group's rotations in degrees, "keeps" is whether every encoding keeps the group, and every so many
    angles, one is on the curves.
    """
    own = saved.network.group
    layers = [layer for layer in saved.network.modules() if isinstance(layer, SelfAttention)]
    return {
        "turns": [round(360 * turn / own.rotations, 6) for turn in range(own.rotations)],
        "mirrors": own.mirrored,
        "keeps": all("poses" in layer.encoding.keeps for layer in layers),
        "every": every,
        "group": own.name,
        "poses": [own.describe(h) for h in range(own.order)],
        "digits": list(digits),
        "shifts": list(SHIFTS),
        "angles": [360 * step / steps for step in range(steps)],
        "classes": list(saved.pictures.classes),
    }


def _turned(picture: Tensor, steps: int) -> Tensor:
    """[1, H, W] → [2 · steps, 1, H, W]."""
    turns = group(f"R{steps}M")
    return torch.cat([turns.act(picture[None], element) for element in range(2 * steps)])


def _shifted(turned: Tensor, steps: int) -> Tensor:
    """[digits · 2 · steps, 1, H, W] → [digits · 2 · shifts · shifts · steps, 1, H, W], down and to the right."""
    rows = [[F.pad(turned, (right, -right, down, -down)) for right in SHIFTS] for down in SHIFTS]
    shifted = torch.stack([torch.stack(row) for row in rows]).unflatten(2, (-1, steps))
    return shifted.permute(2, 0, 1, 3, 4, 5, 6).flatten(0, 3)


def _check_windows(lifted: Tensor, expected: Tensor) -> None:
    """That the lifted feature of a shifted picture is a window of that with a margin."""
    side = expected.shape[-1]
    start = _MARGIN - SHIFTS[0]
    window = lifted[0, 0, 0, ..., start : start + side, start : start + side]
    if window.shape != expected.shape[1:] or (window - expected[0]).abs().max() > 1e-4 * expected.abs().max():
        raise ValueError("the page shows networks whose lifting sees no border and keeps all pixels, as digits_gsa's")


def _batches(function: Callable[[Tensor], Tensor], inputs: Tensor, size: int = 240) -> Tensor:
    return torch.cat([function(batch) for batch in inputs.split(size)])


def lifted_feature(network: Any, inputs: Tensor) -> Tensor:
    """What attention along the group is given first: [B, 1, H, W] → [B, C, poses, H′, W′]."""
    return network.lifted(network.stem_pool(network.lifting(inputs)))


def telling_channels(lifted: Tensor) -> list[int]:
    """Channels of [B, C, poses, H, W] whose poses differ most; of one pose, those that change most."""
    axis = 2 if lifted.shape[2] > 1 else (0, 3, 4)
    differing = lifted.var(axis, keepdim=True).mean((0, 2, 3, 4)) / lifted.square().mean((0, 2, 3, 4))
    return differing.nan_to_num().argsort(descending=True)[:_CHANNELS].sort().values.tolist()


def _changes(logits: Tensor) -> Tensor:
    """Relative change of the logits, [networks, digits, 2, shifts, shifts, steps, K], against the digit as drawn."""
    still = SHIFTS.index(0)
    start = logits[:, :, 0, still, still, 0][:, :, None, None, None, None].double()
    return ((logits.double() - start).norm(dim=-1) / start.norm(dim=-1)).float()


def _feature_errors(lifted: Tensor, network: Network, steps: int) -> dict[str, float]:
    """How far a digit's lifted feature is from turning and moving on, at the exact turns of the network's group."""
    lifted = lifted[..., _MARGIN:-_MARGIN, _MARGIN:-_MARGIN]
    rotations = network.group.rotations  # the first elements of the group
    return {
        f"{360 * h / rotations:g}": relative_error(lifted[steps * h // rotations], network.group.act(lifted[:1], h)[0])
        for h in network.group.grid_elements
        if h < rotations
    }
