"""How much arithmetic a piece of work needs, whatever evaluates it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from gsa.ops import flop_formulas

__all__ = ["flop"]


def flop(work: Callable[[], object]) -> int:
    """Multiplications and additions of products, convolutions and attention in a piece of work, which is done once.

    Gradients of a convolution with its channels in groups cost what it costs itself, each; PyTorch's counter forgets
    the groups in that of the weights.
    """
    counts = {**flop_formulas(), torch.ops.aten.convolution_backward: _of_convolution_backward}
    with FlopCounterMode(display=False, custom_mapping=counts) as counter:
        work()
    return counter.get_total_flops()


def _of_convolution_backward(grad: Tensor, x: Tensor, weight: Tensor, *options: Any, **others: Any) -> int:
    """Of the gradients that are asked for; a bias has no products."""
    *_, transposed, _, _, (of_input, of_weight, _) = options
    assert not transposed
    return 2 * grad.numel() * weight[0].numel() * (of_input + of_weight)


_of_convolution_backward._get_raw = True  # type: ignore[attr-defined]  # it is given tensors, not shapes
