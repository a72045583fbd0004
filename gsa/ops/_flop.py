"""How much arithmetic attention needs, whatever evaluates it."""

from typing import Any

import torch
from torch import Tensor

from gsa.ops._call import of_backward, unpacked

__all__ = ["flop_formulas"]


def flop_formulas() -> dict[Any, Any]:
    """For torch's counter, which knows no other ops than its own: `FlopCounterMode(custom_mapping=flop_formulas())`.

    Attention counts with the least number of products of vectors of length d, 2·d each, for every head and pair of a
    pixel and a pixel that it sees:

        regular: 2QM + Q forward, 5QM + 3Q backward        summed: 2QM + 2PQ forward, 6QM + 5PQ backward

    of Q query, M key and P output poses. Attention by position alone consists of torch's own ops. On the device "meta",
    where nothing is known but shapes, a window counts as a square one.

    Returns:
        Op → function of its arguments, which returns its number of multiplications and additions.
    """
    return {torch.ops.gsa.attend: _forward, torch.ops.gsa.attend_backward: _backward}


def _forward(*call: Any, **others: Any) -> int:
    return _of_call(call, {"regular": (2, 1), "summed": (2, 2)})


def _backward(grad: Tensor, *arguments: Any, **others: Any) -> int:
    return _of_call(of_backward(*arguments)[0], {"regular": (5, 3), "summed": (6, 5)})


# They are given tensors, not shapes.
_forward._get_raw = _backward._get_raw = True  # type: ignore[attr-defined]


def _of_call(call: tuple[Any, ...], products: dict[str, tuple[int, int]]) -> int:
    (query, key, _, spatial, _, window, _, regular, _, crop), _ = unpacked(*call)
    batch, heads, queries, height, width, length = query.shape
    keys, outputs = key.shape[2], 1 if regular else spatial.shape[0]
    with_keys, with_offsets = products["regular" if regular else "summed"]
    count = with_keys * queries * keys + with_offsets * outputs * queries
    return 2 * length * batch * heads * _pairs(window, height, width, crop) * count


def _pairs(window: Tensor, height: int, width: int, crop: int) -> int:
    """Pairs of a pixel that asks and a pixel that it sees."""
    along = [
        (side - crop - (torch.arange(extent, device="cpu") - extent // 2).abs()).clamp(0, side - 2 * crop)
        for side, extent in zip((height, width), window.shape, strict=True)
    ]
    pairs = torch.outer(*along)
    return int((pairs if window.is_meta else pairs * window.cpu()).sum())
