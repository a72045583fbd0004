"""How much arithmetic a piece of work needs, whatever evaluates it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import gsa  # noqa: F401  # whose op is counted

__all__ = ["flop"]


def flop(work: Callable[[], object]) -> int:
    """Multiplications and additions of products, convolutions and attention in a piece of work, which is done once.

    Attention counts with the least number of products of vectors of length d, 2·d each, for every head and pair of a
    pixel and a pixel that it sees:

        regular: 2QM + Q forward, 5QM + 3Q backward        summed: 2QM + 2PQ forward, 6QM + 5PQ backward

    of Q query, M key and P output poses. Gradients of a convolution with its channels in groups cost what it costs
    itself, each; PyTorch's counter forgets the groups in that of the weights.
    """
    counts = {
        torch.ops.gsa.attend: _forward,
        torch.ops.gsa.attend_backward: _backward,
        torch.ops.aten.convolution_backward: _of_convolution_backward,
    }
    with FlopCounterMode(display=False, custom_mapping=counts) as counter:
        work()
    return counter.get_total_flops()


def _forward(*call: Any, **others: Any) -> int:
    return _of_call(call, {"regular": (2, 1), "summed": (2, 2)})


def _backward(grad: Tensor, *call: Any, **others: Any) -> int:
    return _of_call(call, {"regular": (5, 3), "summed": (6, 5)})


def _of_convolution_backward(grad: Tensor, x: Tensor, weight: Tensor, *options: Any, **others: Any) -> int:
    """Of the gradients that are asked for; a bias has no products."""
    *_, transposed, _, _, (of_input, of_weight, _) = options
    assert not transposed
    return 2 * grad.numel() * weight[0].numel() * (of_input + of_weight)


for _count in (_forward, _backward, _of_convolution_backward):
    _count._get_raw = True  # type: ignore[attr-defined]  # they are given tensors, not shapes


def _of_call(call: tuple[Any, ...], products: dict[str, tuple[int, int]]) -> int:
    query, key, _, spatial, _, window, _, regular = call[:8]
    batch, heads, queries, height, width, length = query.shape
    keys, outputs = key.shape[2], 1 if regular else spatial.shape[0]
    with_keys, with_offsets = products["regular" if regular else "summed"]
    count = with_keys * queries * keys + with_offsets * outputs * queries
    return 2 * length * batch * heads * _pairs(window, height, width) * count


def _pairs(window: Tensor, height: int, width: int) -> int:
    """Pairs of a pixel and a pixel that it sees."""
    along = [
        side - (torch.arange(extent) - extent // 2).abs()
        for side, extent in zip((height, width), window.shape, strict=True)
    ]
    return int((torch.outer(*along) * window.cpu()).sum())
