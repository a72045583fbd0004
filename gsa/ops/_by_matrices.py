"""Heads that attend by position as matrices over all pixels and poses of a small map."""

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["multiplied"]


def multiplied(
    features: Tensor,
    scores: Tensor,
    value: Tensor | None,
    out: Tensor,
    bias: Tensor | None,
    padding: int,
    crops: tuple[int, int],
    stride: int,
) -> Tensor:
    """Each head as three products: W_v^e over channels, softmax(score_e) over pixels and poses, W_o^e over channels.

    Args:
        features: x, [B, C, M, H, W].
        scores: [heads, P, M, U, V], −∞ outside the window.
        value: W_v, [heads, d, C]; None is the identity.
        out: W_o, [C′, heads, d].
        bias, padding, stride: as in `gsa.ops.attend_by_position`.
        crops: of rows, and of columns.

    Returns:
        [B, C′, P, H′, W′]
    """
    batch, channels, _, height, width = features.shape
    heads, poses = scores.shape[:2]
    lines = list(zip((height, width), scores.shape[-2:], crops, strict=True))
    is_whole = all(crop + padding >= side // 2 for _, side, crop in lines)
    if is_whole:  # all see as much of their windows; keys beyond the border, which are zero, are in the sums alone
        scores, padding = scores.flatten(2).log_softmax(-1).view(scores.shape), 0
    rows, columns = (_seen(length, side, padding, crop, stride, scores.device) for length, side, crop in lines)
    sides = len(rows), len(columns)
    weights = _weights(scores, rows, columns, is_whole)  # [heads, P, H′, W′, M, H + 2·padding, W + 2·padding]
    if padding:  # what lies there is zero
        weights = weights[..., padding:-padding, padding:-padding]
    weights = weights.reshape(heads, poses * sides[0] * sides[1], -1).to(features)
    keys = features.transpose(0, 1).reshape(channels, -1)  # [C, B·M·H·W]
    if value is None:
        values = keys.reshape(1, channels * batch, weights.shape[2]).expand(heads, -1, -1)
    else:
        values = (value.flatten(0, 1) @ keys).view(heads, -1, weights.shape[2])  # [heads, d·B, M·H·W]
    attended = values @ weights.transpose(1, 2)  # [heads, d·B, P·H′·W′]
    joined = out.flatten(1) @ attended.reshape(heads * out.shape[2], -1)  # [C′, B·P·H′·W′]
    result = joined if bias is None else joined + bias[:, None].to(joined)
    return result.view(len(out), batch, poses, *sides).transpose(0, 1)


def _seen(length: int, side: int, padding: int, crop: int, stride: int, device: torch.device) -> Tensor:
    """Which row of a window every query has every key of a padded line in: [queries, keys]; `side` where in none."""
    reach = side // 2
    queries = torch.arange(crop, length + 1 - side % 2 - crop, stride, device=device)
    keys = torch.arange(-padding, length + padding, device=device)
    seen = keys - queries[:, None] + reach
    return torch.where((seen >= 0) & (seen < side), seen, side)


def _weights(scores: Tensor, rows: Tensor, columns: Tensor, are_logarithms: bool) -> Tensor:
    """softmax(score) over the keys that are there: [heads, P, M, U, V] → [heads, P, H′, W′, M, keys, keys].

    Or what they are the logarithms of.
    """
    scores = F.pad(scores, (0, 1, 0, 1), value=-torch.inf)  # of keys outside the window
    places = rows[:, None, :, None] * scores.shape[-1] + columns[None, :, None, :]  # [H′, W′, keys, keys]
    spread = scores.flatten(3).index_select(3, places.flatten()).unflatten(3, places.shape)
    spread = spread.movedim(2, 4)
    return spread.exp() if are_logarithms else spread.flatten(4).softmax(-1).view(spread.shape)
