"""Attention whose weights are the same for every picture: a convolution, or a few large products."""

from collections.abc import Callable

import torch
from torch import Tensor

from gsa.ops._by_convolution import convolved, convolved_between
from gsa.ops._by_matrices import multiplied
from gsa.ops._validation import check_centre

__all__ = ["attend_by_position"]

_LESS = 1.25  # times fewer products than a convolution has, which does more of them a second
_MOST = 2**22  # weights of all heads, 16 MB: each costs an exponential, and is kept for the backward pass
_FEW = 1 / 16  # of those of a kernel, which is kept, too
_LARGE = 2**18  # weights of a kernel, 1 MB: to make it, and its gradient, costs as much as to use it on so many pixels:
_MADE = 25


def attend_by_position(
    features: Tensor,
    scores: Tensor,
    window: Tensor,
    value: Tensor | None,
    out: Tensor,
    bias: Tensor | None = None,
    *,
    padding: int = 0,
    crop: int | tuple[int, int] = 0,
    stride: int = 1,
    channel_groups: int = 1,
    spread: int = 1,
) -> Tensor:
    """Heads whose scores know only relative position and pose, with their values and the map that joins them.

        out(i, h) = Σ_e W_o^e Σ_{j,m} softmax_{j,m}( score_e(h, m, j − i) ) W_v^e x(j, m) + b

    This is a convolution with the kernel Σ_e W_o^e W_v^e softmax(score_e). Keys outside the picture take no part, as in
    `attend`: at the border the softmax is over those that are left, so every row and column of pixels that misses
    some has a kernel of its own. On small maps whose heads together have few channels for their window, or so many that
    the kernel costs more to make than to use, the three factors one after the other are fewer products, and are what is
    computed.

    Args:
        features: x, [B, C, M, H, W]; M key poses.
        scores: [heads, P, M, U, V]; P output poses. A window of even side stands between pixels, and is asked for
            before each and after the last: H + 1 and W + 1 take the place of H and W below.
        window: bool [U, V], the relative positions that take part, the centre among them.
        value: W_v, [heads, d, C]; None is the identity, with d = C.
        out: W_o, [C′, heads, d]; of channels in groups, [C′, heads, C/channel_groups].
        bias: b, [C′].
        padding: pixels of zeros at every border of the picture, which are keys as well, but are not asked.
        crop: pixels left out at every border of the result; or of rows, and of columns. If negative, so many of the
            padding are asked, too.
        stride: every so many-th pixel of what is left is asked.
        channel_groups: as many groups of channels keep to themselves, as in a grouped convolution; with value None.
        spread: s; s − 1 zeros, which are keys and are asked, are put between the pixels first: (H − 1) s + 1 and
            (W − 1) s + 1 take the place of H and W.

    Returns:
        [B, C′, P, ⌈(H − 2·crop)/stride⌉, ⌈(W − 2·crop)/stride⌉], each with its own crop

    Raises:
        ValueError: shapes that do not fit; a window without its centre; a crop that leaves nothing.
    """
    crops = (crop, crop) if isinstance(crop, int) else crop
    _check(features, scores, window, value, out, bias, padding, crops, stride, channel_groups, spread)
    check_centre(window)
    scores = scores.masked_fill(~window, -torch.inf)
    if spread > 1:
        reaches = [(side // 2, (side - 1) // 2) for side in window.shape]  # before a pixel, and after it
        if stride == 1 and all(
            crop + padding >= before and crop + after >= 0 for crop, (before, after) in zip(crops, reaches, strict=True)
        ):
            return convolved_between(features, scores, _maps(value, out), bias, crops, spread, channel_groups)
        features = _with_zeros_between(features, spread)
    if channel_groups == 1 and _prefers_matrices(features, scores, value, out, crops, stride):
        return multiplied(features, scores, value, out, bias, padding, crops, stride)
    return convolved(features, scores, _maps(value, out), bias, padding, crops, stride, channel_groups)


def _maps(value: Tensor | None, out: Tensor) -> Tensor:
    """W_o^e W_v^e, [heads, C′, C]."""
    return out.transpose(0, 1) if value is None else torch.bmm(out.transpose(0, 1), value)


def _with_zeros_between(features: Tensor, spread: int) -> Tensor:
    """[…, H, W] → […, (H − 1)·spread + 1, (W − 1)·spread + 1]."""
    height, width = ((length - 1) * spread + 1 for length in features.shape[-2:])
    apart = features.new_zeros(*features.shape[:-2], height, width)
    apart[..., ::spread, ::spread] = features
    return apart


def _check(
    features: Tensor,
    scores: Tensor,
    window: Tensor,
    value: Tensor | None,
    out: Tensor,
    bias: Tensor | None,
    padding: int,
    crops: tuple[int, int],
    stride: int,
    channel_groups: int,
    spread: int,
) -> None:
    heads, key_poses, sides = scores.shape[0], scores.shape[2], tuple(scores.shape[3:])
    if features.ndim != 5 or features.shape[2] != key_poses:
        raise ValueError(f"features must be [B, C, {key_poses}, H, W] here, but got the shape {list(features.shape)}")
    if tuple(window.shape) != sides:
        raise ValueError(
            f"scores and window must end in the same sides, but got {list(sides)} and {list(window.shape)}"
        )
    if window.dtype != torch.bool:
        raise ValueError(f"window must be of dtype bool, but got {window.dtype}")
    channels = features.shape[1]
    if channel_groups < 1 or any(count % channel_groups for count in (channels, out.shape[0])):
        raise ValueError(
            f"channel_groups must divide {channels} channels and {out.shape[0]} of the result, but got {channel_groups}"
        )
    if value is not None and channel_groups > 1:
        raise ValueError(f"value must be None where channels are in groups, but got the shape {list(value.shape)}")
    inner = channels // channel_groups if value is None else value.shape[1]
    if value is not None and tuple(value.shape) != (heads, inner, channels):
        raise ValueError(f"value must be [{heads}, d, {channels}] here, but got the shape {list(value.shape)}")
    if out.ndim != 3 or tuple(out.shape[1:]) != (heads, inner):
        raise ValueError(f"out must be [C′, {heads}, {inner}] here, but got the shape {list(out.shape)}")
    if bias is not None and tuple(bias.shape) != (out.shape[0],):
        raise ValueError(f"bias must be [{out.shape[0]}] here, as out is, but got the shape {list(bias.shape)}")
    if padding < 0:
        raise ValueError(f"padding must not be negative, but got {padding}")
    if spread < 1:
        raise ValueError(f"spread must be positive, but got {spread}")
    height, width = ((length - 1) * spread + 1 for length in features.shape[-2:])
    left = [length + 1 - side % 2 - 2 * crop for length, side, crop in zip((height, width), sides, crops, strict=True)]
    if min(crops) < -padding or min(left) < 1:
        of = (
            f"{crops[0]} pixels from every border" if len({*crops}) == 1 else f"{crops} rows and columns from every end"
        )
        raise ValueError(
            f"cropping {of} leaves nothing of a {height}×{width} map, or asks beyond a padding of {padding}"
        )
    if stride < 1:
        raise ValueError(f"stride must be positive, but got {stride}")


def _prefers_matrices(
    features: Tensor, scores: Tensor, value: Tensor | None, out: Tensor, crops: tuple[int, int], stride: int
) -> bool:
    """Whether few weights and fewer products a picture than the convolution's will do; for batches of any size.

    A kernel is made once a batch, but convolutions of small maps with a large one are slow in other ways, too.
    """
    channels, key_poses, height, width = features.shape[1:]
    poses, (outputs, heads, inner) = scores.shape[1], out.shape
    rows, columns = (
        -(-(length + 1 - side % 2 - 2 * crop) // stride)
        for length, side, crop in zip((height, width), scores.shape[3:], crops, strict=True)
    )
    if torch.jit.is_tracing():  # the sizes of a trace are those of one example
        return False
    known: Callable[..., bool] = bool
    if torch.compiler.is_compiling():  # not where they are symbols
        from torch.fx.experimental.symbolic_shapes import statically_known_true

        known = statically_known_true
    queries, keys = poses * rows * columns, key_poses * height * width
    weights = heads * queries * keys
    kernel = outputs * poses * channels * key_poses * scores.shape[3] * scores.shape[4]
    are_few = known(weights <= _FEW * kernel)
    made = _MADE if are_few and known(kernel > _LARGE) else 0
    by_convolution = kernel * (rows * columns + made)
    by_matrices = heads * inner * (queries * (keys + outputs) + (0 if value is None else keys * channels))
    return (are_few or known(weights <= _MOST)) and known(_LESS * by_matrices < by_convolution)
