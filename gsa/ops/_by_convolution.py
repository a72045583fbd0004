"""Heads that attend by position as a convolution, with other kernels at the border."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["convolved", "convolved_between"]


def convolved(
    features: Tensor,
    scores: Tensor,
    maps: Tensor,
    bias: Tensor | None,
    padding: int,
    crops: tuple[int, int],
    stride: int,
    channel_groups: int = 1,
) -> Tensor:
    """The sum over heads as one kernel, Σ_e W_e softmax(score_e); every row and column of the border has its own.

    Args:
        features: x, [B, C, M, H, W].
        scores: [heads, P, M, U, V], −∞ outside the window.
        maps: W_e = W_o^e W_v^e, [heads, C′, C/channel_groups].
        bias, padding, stride, channel_groups: as in `gsa.ops.attend_by_position`.
        crops: of rows, and of columns.

    Returns:
        [B, C′, P, H′, W′]
    """
    pixels = features.flatten(1, 2)  # of four axes: the compiler of torch 2.14 stumbles over padding more of them
    pixels = F.pad(pixels, (padding,) * 4) if padding else pixels
    poses = scores.shape[1]
    biases = None if bias is None else bias.repeat_interleave(poses, 0)
    rows, columns = (
        _alike(length, side, crop + padding, stride)
        for length, side, crop in zip(pixels.shape[-2:], scores.shape[-2:], crops, strict=True)
    )
    result = [
        _joined([
            F.conv2d(
                pixels[..., y, x],
                _kernel(scores[..., u, v], maps),
                biases,
                (down, right),
                groups=channel_groups,
            )
            for x, v, right in columns
        ], dim=-1)
        for y, u, down in rows
    ]  # fmt: skip
    return _joined(result, dim=-2).unflatten(1, (-1, poses))


def convolved_between(
    features: Tensor,
    scores: Tensor,
    maps: Tensor,
    bias: Tensor | None,
    crops: tuple[int, int],
    spread: int,
    channel_groups: int = 1,
) -> Tensor:
    """The same of pixels that zeros were put between, where no window is cut: a transposed convolution.

    Args:
        crops: of rows, and of columns, of the map with the zeros.
        spread: so many pixels apart are those of the picture.
    """
    poses, sides = scores.shape[1], scores.shape[-2:]
    by_group = _kernel(scores, maps).unflatten(0, (channel_groups, -1)).transpose(1, 2)
    result = F.conv_transpose2d(
        features.flatten(1, 2),
        by_group.flatten(0, 1).flip(-2, -1),
        None if bias is None else bias.repeat_interleave(poses, 0),
        spread,
        [(side - 1) // 2 + crop for side, crop in zip(sides, crops, strict=True)],
        groups=channel_groups,
    )
    return result.unflatten(1, (-1, poses))


def _alike(length: int, side: int, crop: int, stride: int) -> list[tuple[slice, slice, int]]:
    """Pixels of a line in groups that see the same part of a window: what they see of the line, of the window, and the
    stride from one to the next; 1 of a single pixel, for which a stride of 2 in bfloat16 gives wrong numbers in
    oneDNN on processors with AMX (torch 2.15). A length may be a symbol, of which no number is made, at stride 1 and
    where the border is not seen. Windows of even sides stand before pixels, and after the last one, too."""
    reach, ahead = side // 2, (side + 1) // 2  # what a pixel sees before it; and after, with itself
    end = length - crop + 1 - side % 2
    first = crop + max(-(-(reach - crop) // stride), 0) * stride  # that sees all of the window before it
    stop = end - max(reach - crop, 0)  # what stands from here on does not see all that comes after it
    before = [pixel for pixel in range(crop, reach, stride) if pixel < end]
    groups = [
        (slice(0, min(pixel + ahead, length)), slice(reach - pixel, min(length - pixel, ahead) + reach), 1)
        for pixel in before
    ]
    if stop > first:
        step, last = (stride, stop) if stop - first > stride else (1, first + 1)
        groups.append((slice(first - reach, last + ahead - 1), slice(None), step))
    after: Sequence[int] = range(ahead - 1, crop - 1 + side % 2, -1) if crop < reach else ()  # from the end of the line
    if stride > 1 and crop < reach:
        after = [length - pixel for pixel in range(first, end, stride) if pixel >= stop]
    groups += [
        (slice(length - place - reach, length), slice(0, place + reach), 1)
        for place in after
        if length - place >= first
    ]
    return groups


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
