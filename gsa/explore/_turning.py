"""What a network makes of pictures turned, mirrored and shifted, computed once so that a slider can pick from it."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gsa.explore._looking import looking
from gsa.explore._packed import packed
from gsa.explore._strokes import drawn
from gsa.groups import group
from gsa.models import Network
from gsa.saved import Saved
from gsa.symmetry import relative_error

__all__ = ["turning", "without_action"]

_SHIFTS = (-2, -1, 0, 1, 2)
_CHANNELS = 2  # of the lifted feature


def turning(saved: Saved, steps: int = 72, digits: Sequence[str] = ("2", "3", "7")) -> dict[str, Any]:
    """Pictures in every state, the lifted feature, attention, class probabilities, and the change of the logits.

        error(state) = ‖F(L x) − F(x)‖ / ‖F(x)‖

    A state is a digit that is mirrored or not, then turned counter-clockwise, then shifted to the right. Everything is
    computed in float32, by the network and by its twin `without_action`.

    Args:
        saved: a trained network of grey pictures that is made as `digits_gsa` is: attention by position first, heads
            with content last.
        steps: angles in a full turn; a multiple of 4.
        digits: of `gsa.explore._strokes.DIGITS`.

    Returns:
        Plain values for JSON: names and axes, errors as numbers [digits, 2, shifts, steps], the rest packed:
        "picture" [digits, 2, shifts, steps, H, W], "lifted" [digits, 2, shifts, steps, channels, poses, H′, W′],
        "probabilities" [networks, digits, 2, shifts, steps, K], "layers" of `looking`.

    Raises:
        ValueError: steps that are no multiple of 4; a network made otherwise.
    """
    network = saved.network
    if steps < 4 or steps % 4:
        raise ValueError(f"steps must be a multiple of 4, so that quarter turns are among them, but got {steps}")
    pictures = torch.cat([_states(drawn(digit, saved.pictures.image_size), steps) for digit in digits])
    axes = (len(digits), 2, len(_SHIFTS), steps)
    inputs = saved.pictures.normalise(pictures)
    layers = looking(network, inputs, axes)
    plain = without_action(network)
    with torch.no_grad():
        logits = [_batches(net, inputs).unflatten(0, axes) for net in (network, plain)]
        lifted = _batches(lambda x: _lifted(network, x), inputs)
        channels = lifted.std((0, 2, 3, 4)).argsort(descending=True)[:_CHANNELS].sort().values
        features = lifted[:, channels].unflatten(0, axes)
    return {
        "group": network.group.name,
        "poses": [network.group.describe(h) for h in range(network.group.order)],
        "digits": list(digits),
        "shifts": list(_SHIFTS),
        "angles": [360 * step / steps for step in range(steps)],
        "classes": list(saved.pictures.classes),
        "channels": channels.tolist(),
        "errors": [_changes(values) for values in logits],
        "feature_errors": _feature_errors(lifted.unflatten(0, axes), network, steps),
        "picture": packed(pictures[:, 0].unflatten(0, axes), bits=8),
        "lifted": packed(features, bits=8),
        "probabilities": packed(torch.stack([values.softmax(-1) for values in logits]), bits=8),
        "layers": layers,
    }


def without_action(network: Network) -> Network:
    """The same weights with no group acting on the encodings: every pose looks at the picture as the first one does.

    A feature is then the same in all poses, as if there were one: what is left is a network of Z2.
    """
    plain = copy.deepcopy(network)
    for name, table in plain.named_buffers():
        if name.endswith("inverse_matrices"):
            table.copy_(torch.eye(2).expand_as(table))
    return plain


def _states(picture: Tensor, steps: int) -> Tensor:
    """[1, H, W] → [2 · shifts · steps, 1, H, W]."""
    turns = group(f"R{steps}M")
    found = []
    for mirrored in (0, 1):
        turned = torch.cat([turns.act(picture[None], mirrored * steps + step) for step in range(steps)])
        found += [F.pad(turned, (shift, -shift)) for shift in _SHIFTS]
    return torch.cat(found)


def _batches(function: Callable[[Tensor], Tensor], inputs: Tensor, size: int = 240) -> Tensor:
    return torch.cat([function(batch) for batch in inputs.split(size)])


def _lifted(network: Any, inputs: Tensor) -> Tensor:
    return network.lifted(network.stem_pool(network.lifting(inputs)))


def _changes(logits: Tensor) -> list:
    """Relative change of the logits of every state, against the digit as it was drawn: [digits, 2, shifts, steps]."""
    start = logits[:, :1, _SHIFTS.index(0), :1][:, :, None].double()
    change = (logits.double() - start).norm(dim=-1) / start.norm(dim=-1)
    return change.tolist()


def _feature_errors(lifted: Tensor, network: Network, steps: int) -> list[dict[str, float]]:
    """Of every digit, how far the lifted feature is from turning and moving on, at the exact turns of its own group."""
    order = network.group.order
    found = []
    for digit in lifted[:, 0, _SHIFTS.index(0)]:
        own = [h for h in network.group.grid_elements if network.group.matrices[h].det() > 0]
        errors = {
            f"{360 * h / order:g}": relative_error(digit[steps * h // order], network.group.act(digit[:1], h)[0])
            for h in own
        }
        found.append(errors)
    return found
