"""Attention whose weights are the same for all queries: a convolution, with other kernels at the border."""

import torch
import torch.nn.functional as F
from torch import Tensor

from gsa.ops._validation import check_centre

__all__ = ["attend_by_position"]


def attend_by_position(
    features: Tensor,
    scores: Tensor,
    window: Tensor,
    value: Tensor | None,
    out: Tensor,
    bias: Tensor | None = None,
    *,
    crop: int = 0,
    stride: int = 1,
) -> Tensor:
    """Heads whose scores know only relative position and pose, with their values and the map that joins them.

        out(i, h) = Σ_e W_o^e Σ_{j,m} softmax_{j,m}( score_e(h, m, j − i) ) W_v^e x(j, m) + b

    This is a convolution with the kernel Σ_e W_o^e W_v^e softmax(score_e). Keys outside the picture take no part, as in
    `attend`: at the border the softmax is over those that are left, so every row and column of pixels that misses
    some has a kernel of its own.

    Args:
        features: x, [B, C, M, H, W]; M key poses.
        scores: [heads, P, M, U, V]; P output poses, U and V odd.
        window: bool [U, V], the relative positions that take part, the centre among them.
        value: W_v, [heads, d, C]; None is the identity, with d = C.
        out: W_o, [C′, heads, d].
        bias: b, [C′].
        crop: pixels left out at every border of the result.
        stride: every so many-th pixel of what is left is asked.

    Returns:
        [B, C′, P, ⌈(H − 2·crop)/stride⌉, ⌈(W − 2·crop)/stride⌉]

    Raises:
        ValueError: shapes that do not fit; a window without its centre; a crop that leaves nothing.
    """
    _check(features, scores, window, value, out, bias, crop, stride)
    check_centre(window)
    scores = scores.masked_fill(~window, -torch.inf)
    maps = out.transpose(0, 1) if value is None else torch.bmm(out.transpose(0, 1), value)  # [heads, C′, C]
    poses = scores.shape[1]
    biases = None if bias is None else bias.repeat_interleave(poses)
    rows, columns = (
        _alike(length, side, crop, stride) for length, side in zip(features.shape[-2:], window.shape, strict=True)
    )
    result = [
        _joined([
            F.conv2d(features[..., y, x].flatten(1, 2), _kernel(scores[..., u, v], maps), biases, (down, right))
            for x, v, right in columns
        ], dim=-1)
        for y, u, down in rows
    ]  # fmt: skip
    return _joined(result, dim=-2).unflatten(1, (-1, poses))


def _check(
    features: Tensor,
    scores: Tensor,
    window: Tensor,
    value: Tensor | None,
    out: Tensor,
    bias: Tensor | None,
    crop: int,
    stride: int,
) -> None:
    heads, key_poses, sides = scores.shape[0], scores.shape[2], tuple(scores.shape[3:])
    if features.ndim != 5 or features.shape[2] != key_poses:
        raise ValueError(f"features must be [B, C, {key_poses}, H, W] here, but got the shape {list(features.shape)}")
    if tuple(window.shape) != sides or any(side % 2 == 0 for side in sides):
        raise ValueError(
            f"scores and window must end in the same odd sides, but got {list(sides)} and {list(window.shape)}"
        )
    if window.dtype != torch.bool:
        raise ValueError(f"window must be of dtype bool, but got {window.dtype}")
    channels = features.shape[1]
    inner = channels if value is None else value.shape[1]
    if value is not None and tuple(value.shape) != (heads, inner, channels):
        raise ValueError(f"value must be [{heads}, d, {channels}] here, but got the shape {list(value.shape)}")
    if out.ndim != 3 or tuple(out.shape[1:]) != (heads, inner):
        raise ValueError(f"out must be [C′, {heads}, {inner}] here, but got the shape {list(out.shape)}")
    if bias is not None and tuple(bias.shape) != (out.shape[0],):
        raise ValueError(f"bias must be [{out.shape[0]}] here, as out is, but got the shape {list(bias.shape)}")
    height, width = features.shape[-2:]
    if crop < 0 or min(height, width) <= 2 * crop:
        raise ValueError(f"cropping {crop} pixels from every border leaves nothing of a {height}×{width} map")
    if stride < 1:
        raise ValueError(f"stride must be positive, but got {stride}")


def _alike(length: int, side: int, crop: int, stride: int) -> list[tuple[slice, slice, int]]:
    """Pixels of a line in groups that see the same part of a window: what they see of the line, of the window, and the
    stride from one to the next; 1 of a single pixel, for which a stride of 2 in bfloat16 gives wrong numbers in
    oneDNN on processors with AMX (torch 2.15)."""
    reach = side // 2
    asked = range(crop, length - crop, stride)
    inner = [pixel for pixel in asked if reach <= pixel < length - reach]  # they see the whole window

    def alone(pixel: int) -> tuple[slice, slice, int]:
        first, last = max(pixel - reach, 0), min(pixel + reach, length - 1)
        return slice(first, last + 1), slice(first - pixel + reach, last - pixel + reach + 1), 1

    step = stride if len(inner) > 1 else 1
    together = [(slice(inner[0] - reach, inner[-1] + reach + 1), slice(None), step)] if inner else []
    before = [pixel for pixel in asked if pixel < reach and pixel not in inner]
    after = [pixel for pixel in asked if pixel >= reach and pixel not in inner]
    return [*map(alone, before), *together, *map(alone, after)]


def _joined(pieces: list[Tensor], dim: int) -> Tensor:
    """Side by side; one piece is not copied."""
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim)


def _kernel(scores: Tensor, maps: Tensor) -> Tensor:
    """Σ_e W_e softmax(score_e) as filters: [heads, P, M, u, v], [heads, C′, C] → [C′·P, C·M, u, v]."""
    _, poses, key_poses, *sides = scores.shape
    weights = scores.flatten(2).softmax(-1).to(maps)  # scores are precise in networks of any dtype
    kernel = maps.flatten(1).T @ weights.flatten(1)  # [C′·C, P·M·u·v]
    kernel = kernel.view(*maps.shape[1:], poses, key_poses, *sides).transpose(1, 2)
    return kernel.reshape(maps.shape[1] * poses, -1, *sides)
