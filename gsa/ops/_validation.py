"""What the tensors of the attention op must agree on; one check for all backends."""

import torch
from torch import Tensor

from gsa.ops._call import Call

__all__ = ["FORMS", "check", "check_centre", "is_regular"]

FORMS = ("regular", "summed")


def is_regular(form: str) -> bool:
    """Whether this form is the regular one; ValueError where it is none of FORMS."""
    if form not in FORMS:
        raise ValueError(f"form must be one of {FORMS}, but got {form!r}")
    return form == "regular"


def check(call: Call) -> None:
    """Raises ValueError naming the rule, what was expected, and what came."""
    query, key, value, spatial, pose, window = call[:6]
    if not 0 <= call.dropout < 1:
        raise ValueError(f"dropout must be a probability in [0, 1), but got {call.dropout}")
    for name, tensor, axes in (
        ("query", query, "[B, heads, query poses, H, W, d]"),
        ("key", key, "[B, heads, key poses, H, W, d]"),
    ):
        if tensor.ndim != 6:
            raise ValueError(f"{name} must be {axes}, but got the shape {list(tensor.shape)}")
    for name, tensor in zip(call._fields[:5], call[:5], strict=True):
        if not tensor.is_floating_point():
            raise ValueError(f"{name} must be of a floating dtype, but got {tensor.dtype}")
    batch, heads, query_poses, height, width, head_dim = query.shape
    if not height * width:
        raise ValueError(f"query must be of maps of at least one pixel, but got the shape {list(query.shape)}")
    if type(call.crop) is not int or call.crop < 0 or min(height, width) <= 2 * call.crop:
        raise ValueError(
            f"crop must be a number of pixels that leaves some of a {height}×{width} map, but got {call.crop!r}"
        )
    key_poses = key.shape[2]
    _expect("key", key, (batch, heads, key_poses, height, width, head_dim))
    _expect("value", value, tuple(key.shape))
    _expect("pose", pose, (query_poses, key_poses, head_dim))
    if window.ndim != 2 or window.shape[0] % 2 == 0 or window.shape[1] % 2 == 0:
        raise ValueError(f"window must be [U, V] with odd sides, but got the shape {list(window.shape)}")
    if window.dtype != torch.bool:
        raise ValueError(f"window must be of dtype bool, but got {window.dtype}")
    output_poses = query_poses if call.regular else spatial.shape[0]
    _expect("spatial", spatial, (output_poses, *window.shape, head_dim))

    for name, tensor in zip(call._fields[1:7], call[1:7], strict=True):
        if not isinstance(tensor, Tensor) or (name == "seed" and (tensor.ndim or tensor.dtype != torch.int64)):
            raise ValueError(f"{name} must be a tensor, an int64 scalar if it is the seed, but got {tensor!r}")
        if tensor.device != query.device:
            raise ValueError(f"{name} must be on the device of query, {query.device}, but is on {tensor.device}")


def check_centre(window: Tensor) -> None:
    """The one rule on a value: asked where the op runs, not while it is traced, and only of windows on the CPU.

    A GPU would have to be waited for, at every call.

    Raises:
        ValueError: the centre is left out, so that a pixel may attend to nothing; of an even side, one of the two
            pixels that it lies between.
    """
    if window.device.type != "cpu" or torch.compiler.is_compiling():
        return
    rows, columns = (slice((side - 1) // 2, side // 2 + 1) for side in window.shape)
    if not window[rows, columns].all():
        raise ValueError("window must hold its middle entry, the pixel itself: expected True there, but got False")


def _expect(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} must have the shape {list(shape)} here, but got {list(tensor.shape)}")
