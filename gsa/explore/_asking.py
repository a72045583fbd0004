"""What networks make of one picture in one state, computed when it is asked for."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gsa.encodings import KINDS
from gsa.explore._looking import attended, looking
from gsa.explore._packed import packed
from gsa.explore._strokes import DIGITS, drawn
from gsa.explore._turning import SHIFTS, described, lifted_feature, telling_channels
from gsa.groups import group
from gsa.models import Network
from gsa.nn import SelfAttention
from gsa.saved import Saved
from gsa.symmetry import relative_error

__all__ = ["STEPS", "asked", "offered"]

STEPS = 144  # angles in a full turn: those of R16 and of R12 are among them
_EVERY = 2  # of them, one on the curves
_TURNS = group(f"R{STEPS}M")


def offered(saved: Saved) -> dict[str, Any]:
    """What is the same in every state: names, axes, the digits to begin with, and layers of `looking`.

    Args:
        saved: a network of grey pictures whose first layer is lifting self-attention.

    Returns:
        Plain values for JSON, named as those of `turning`; "picture" is packed bytes, [digits, H, W], "live" is true,
        and "kind" what `_kind` says.

    Raises:
        ValueError: other networks.
    """
    network, known = saved.network, saved.pictures
    pictures = torch.stack([drawn(digit, known.image_size) for digit in DIGITS])
    inputs = known.normalise(pictures)
    layers = looking(network, inputs)
    with torch.no_grad():
        lifted = lifted_feature(network, inputs)
    return described(saved, list(DIGITS), STEPS, _EVERY) | {
        "live": True,
        "kind": _kind(network),
        "channels": telling_channels(lifted),
        "picture": packed((255 * pictures[:, 0]).round().to(torch.uint8)),
        "layers": layers,
    }


def asked(
    saved: Saved,
    plain: Saved | None,
    pixels: bytes,
    place: tuple[int, int, int, int],
    channels: Sequence[int],
    looks_from: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """One state of one picture; every answer needs its question only.

        error = ‖F(L x) − F(x)‖ / ‖F(x)‖

    Args:
        saved: as in `offered`.
        plain: the network beside it, of the same pictures.
        pixels: the picture as it was drawn, a byte a pixel, row by row.
        place: mirrored or not, and indices of the shifts down and to the right and of the angle.
        channels: of the lifted feature.
        looks_from: row and column of the pixel whose heads of the first layer are asked; the middle when None.

    Returns:
        Plain values for JSON: packed "picture" [H, W], "lifted" [channels, poses, H′, W′], "attention" of the layers
        that look by content, [heads, poses, U, V] each; by network its "errors" and "probabilities"; "limits" of the
        channels in the picture as it was drawn; "moved", how far the lifted feature is from that of the picture as it
        was drawn, turned and moved on, or None where the state is not in the group.

    Raises:
        ValueError: a state or a pixel that is not there, another number of bytes, or logits that are not finite.
    """
    network, known = saved.network, saved.pictures
    start, picture = _pictures(pixels, place, known.image_size)
    both = torch.cat((start, picture))
    after, contents = attended(network, known.normalise(picture), looks_from)
    with torch.no_grad():
        logits = torch.cat((network(known.normalise(start)), after))
        lifted = lifted_feature(network, known.normalise(both))
        others = [] if plain is None else [plain.network(plain.pictures.normalise(both))]
    said = torch.stack([logits, *others]).double()
    if not said.isfinite().all():
        raise ValueError("what the network says of this picture is not finite")
    return {
        "picture": packed(picture[0, 0], bits=8),
        "lifted": packed(lifted[1, list(channels)], bits=8),
        "limits": lifted[0, list(channels)].abs().amax((1, 2, 3)).tolist(),
        "attention": {name: packed(maps[0], bits=8) for name, maps in contents.items()},
        "errors": ((said[:, 1] - said[:, 0]).norm(dim=-1) / said[:, 0].norm(dim=-1)).tolist(),
        "probabilities": said[:, 1].softmax(-1).tolist(),
        "start": said[:, 0].softmax(-1).tolist(),
        "moved": _moved(network, lifted, place),
    }


def _kind(network: Network) -> str:
    """Group, and encoding, form and neighbourhood of its attention, as R4, quadratic, regular, 3×3."""
    layers = [layer for layer in network.modules() if isinstance(layer, SelfAttention)]
    encodings = {name for name, kind in KINDS.items() for layer in layers if type(layer.encoding) is kind}
    forms = {layer.form for layer in layers} - {"lifting"}
    windows = {(layer.neighbourhood.size, layer.neighbourhood.window) for layer in layers}
    sizes = [
        "the whole map" if size is None else f"{size}×{size}" + (f" {window}" if window != "square" else "")
        for size, window in sorted(windows, key=str)
    ]
    parts = (" and ".join(part) for part in (sorted(encodings), sorted(forms), sizes))
    return ", ".join([network.group.name, *filter(None, parts)])


def _pictures(pixels: bytes, place: tuple[int, int, int, int], side: int) -> tuple[Tensor, Tensor]:
    """As it was drawn, and in its state: [1, 1, H, W] each."""
    mirror, down, right, angle = place
    sizes = (2, len(SHIFTS), len(SHIFTS), STEPS)
    if not all(0 <= index < size for index, size in zip(place, sizes, strict=True)):
        raise ValueError(f"mirror, down, right and angle must be whole numbers below {sizes}, but got {place}")
    if len(pixels) != side * side:
        raise ValueError(f"a picture must have {side} × {side} bytes, but has {len(pixels)}")
    start = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).view(1, 1, side, side) / 255
    turned = _TURNS.act(start, STEPS * mirror + angle)
    return start, F.pad(turned, (SHIFTS[right], -SHIFTS[right], SHIFTS[down], -SHIFTS[down]))


def _moved(network: Network, lifted: Tensor, place: tuple[int, int, int, int]) -> float | None:
    """`relative_error` of [2, C, poses, H′, W′] at an element of the group that moves pixels to pixels."""
    mirror, down, right, angle = place
    if SHIFTS[down] or SHIFTS[right]:
        return None
    matrix = _TURNS.matrices[STEPS * mirror + angle]
    for h in network.group.grid_elements:
        if torch.allclose(network.group.matrices[h], matrix, atol=1e-6):
            return relative_error(lifted[1], network.group.act(lifted[:1], h)[0])
    return None
