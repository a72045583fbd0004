"""Attention whose weights are the same for all queries: a convolution, but for the border."""

import torch
import torch.nn.functional as F
from torch import Tensor

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
) -> Tensor:
    """Heads whose scores know only relative position and pose, with their values and the map that joins them.

        out(i, h) = Σ_e W_o^e Σ_{j,m} softmax_{j,m}( score_e(h, m, j − i) ) W_v^e x(j, m) + b

    Away from the border this is one convolution with the kernel Σ_e W_o^e W_v^e softmax(score_e), and computed as one.
    Keys outside the picture take no part, as in `attend`, so near the border every head has a norm of its own, and
    heads are computed one by one.

    Args:
        features: x, [B, C, M, H, W]; M key poses.
        scores: [heads, P, M, U, V]; P output poses, U and V odd.
        window: bool [U, V], the relative positions that take part, the centre among them.
        value: W_v, [heads, d, C]; None is the identity, with d = C.
        out: W_o, [C′, heads, d].
        bias: b, [C′].
        crop: pixels left out at every border of the result.

    Returns:
        [B, C′, P, H − 2·crop, W − 2·crop]
    """
    weights = scores.masked_fill(~window, -torch.inf).flatten(2).softmax(-1).view_as(scores)
    maps = weights, value, out, out.new_zeros(len(out)) if bias is None else bias
    height, width = features.shape[-2:]
    rows, columns = (side // 2 for side in window.shape)  # of the border, where keys are missing
    if height <= 2 * rows or width <= 2 * columns:
        return _cut(_head_by_head(features, *maps), crop, crop)
    result = _cut(_composed(features, *maps), max(crop - rows, 0), max(crop - columns, 0))
    if crop < columns:
        sides = features[..., : 2 * columns], features[..., width - 2 * columns :]
        left, right = (_cut(_head_by_head(side, *maps), max(rows, crop), 0) for side in sides)
        result = torch.cat((left[..., crop:columns], result, right[..., columns : 2 * columns - crop]), dim=-1)
    if crop < rows:
        sides = features[..., : 2 * rows, :], features[..., height - 2 * rows :, :]
        top, bottom = (_cut(_head_by_head(side, *maps), 0, crop) for side in sides)
        result = torch.cat((top[..., crop:rows, :], result, bottom[..., rows : 2 * rows - crop, :]), dim=-2)
    return result


def _cut(x: Tensor, rows: int, columns: int) -> Tensor:
    """Without so many rows above and below, and columns left and right."""
    height, width = x.shape[-2:]
    return x[..., rows : height - rows, columns : width - columns]


def _composed(x: Tensor, weights: Tensor, value: Tensor | None, out: Tensor, bias: Tensor) -> Tensor:
    """One convolution with one kernel, at the pixels that see their whole window: [B, C′, P, H − U + 1, W − V + 1]."""
    joined = out if value is None else torch.einsum("oed,edc->oec", out, value)
    kernel = torch.einsum("oec,epmuv->opcmuv", joined, weights)
    biases = bias.repeat_interleave(kernel.shape[1])
    y = F.conv2d(x.flatten(1, 2), kernel.flatten(2, 3).flatten(0, 1), biases)
    return y.unflatten(1, kernel.shape[:2])


def _head_by_head(x: Tensor, weights: Tensor, value: Tensor | None, out: Tensor, bias: Tensor) -> Tensor:
    """Every head on its own, over the keys that there are: [B, C′, P, H, W]."""
    heads, poses, _, rows, columns = weights.shape
    size, padding = x.shape[-2:], (rows // 2, columns // 2)
    values = (
        torch.einsum("edc,bcmyx->bdemyx", value, x)
        if value is not None
        else x[:, :, None].expand(-1, -1, heads, -1, -1, -1)
    )
    batch = values.shape[:2]
    attended = F.conv2d(values.flatten(0, 1).flatten(1, 2), weights.flatten(0, 1), padding=padding, groups=heads)
    seen = F.conv2d(x.new_ones(1, 1, *size), weights.sum(2).flatten(0, 1)[:, None].to(x.dtype), padding=padding)
    attended = (attended / seen).view(*batch, heads, poses, *size)
    return torch.einsum("oed,bdepyx->bopyx", out, attended) + bias[:, None, None, None]
