"""The largest pixel of every window, with a gradient that turns with the picture."""

from collections.abc import Iterator
from functools import reduce
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

__all__ = ["largest"]


def largest(x: Tensor, kernel: tuple[int, int], stride: int) -> Tensor:
    """The maximum of every window; pixels that have it in common share its gradient.

        y(i) = max_u x(s·i + u),   ∂y(i)/∂x(s·i + u) = 1/n where x(s·i + u) = y(i), which n pixels of the window do

    So gradients turn with the picture on an even background, too. `torch.nn.functional.max_pool2d` gives all to the
    first of such pixels, which in a turned picture is another. Pixels that rounding tells apart have nothing in common.
    Windows of 4, 8, … side by side are halved again and again, and halves share alike, however many pixels of each do.

    Args:
        x: [..., H, W], its sides no smaller than the window.
        kernel: sides k of the window.
        stride: s.

    Returns:
        [..., ⌊(H − k)/s⌋ + 1, ⌊(W − k)/s⌋ + 1]
    """
    while kernel == (stride, stride) and stride > 2 and stride % 2 == 0:  # halves of halves: few cells at a time
        x, kernel, stride = _of_windows(x, (2, 2), 2), (stride // 2, stride // 2), stride // 2
    return _of_windows(x, kernel, stride)


def _of_windows(x: Tensor, kernel: tuple[int, int], stride: int) -> Tensor:
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # which take no function of Python's
        return torch.stack([_cell(x, at, kernel, stride) for at in _places(kernel)]).amax(0)
    has_gradient = torch.is_grad_enabled() and x.requires_grad
    if not has_gradient and unpack_dual(x).tangent is None:
        return _maximum(x, kernel, stride)
    maximum: Tensor = _Largest.apply(x, kernel, stride)[0]
    return maximum


def _maximum(x: Tensor, kernel: tuple[int, int], stride: int) -> Tensor:
    """What `amax` over stacked cells is, without the time that the stack takes."""
    if kernel == (1, 1):
        return _cell(x, (0, 0), kernel, stride).clone()  # no view, which could not be changed in place
    high, wide = kernel
    rows = reduce(torch.maximum, (x[..., _line(at, x.shape[-2], high, stride), :] for at in range(high)))
    return reduce(torch.maximum, (rows[..., _line(at, x.shape[-1], wide, stride)] for at in range(wide)))


class _Largest(torch.autograd.Function):
    """The maximum, and for each place of a window whether its pixel is a largest one.

    The maximum itself is not kept, and may be changed in place, as by activations.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, kernel: tuple[int, int], stride: int) -> tuple[Tensor, Tensor]:
        maximum = _maximum(x, kernel, stride)
        return maximum, torch.stack([_cell(x, at, kernel, stride) == maximum for at in _places(kernel)])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, tuple[int, int], int], output: tuple[Tensor, Tensor]) -> None:
        x, *ctx.sizes = inputs
        ctx.shape = x.shape
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
        ctx.save_for_forward(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: None) -> tuple[Tensor, None, None]:
        tied = ctx.saved_tensors[0]
        part = grad / tied.sum(0, dtype=torch.int16)
        spread = part.new_zeros(ctx.shape)
        for at, one in zip(_places(ctx.sizes[0]), tied, strict=True):
            _cell(spread, at, *ctx.sizes).add_(one * part)
        return spread, None, None

    @staticmethod
    def jvp(ctx: Any, direction: Tensor, *_: None) -> tuple[Tensor, None]:
        tied = ctx.saved_tensors[0]
        places = zip(_places(ctx.sizes[0]), tied, strict=True)
        changes = [one * _cell(direction, at, *ctx.sizes) for at, one in places]
        return reduce(torch.add, changes) / tied.sum(0, dtype=torch.int16), None


def _places(kernel: tuple[int, int]) -> Iterator[tuple[int, ...]]:
    """Row and column of every pixel of a window."""
    return product(*map(range, kernel))


def _line(at: int, side: int, kernel: int, stride: int) -> slice:
    """The pixel at this place of every window along one side."""
    return slice(at, at + stride * ((side - kernel) // stride) + 1, stride)


def _cell(x: Tensor, at: tuple[int, ...], kernel: tuple[int, int], stride: int) -> Tensor:
    """The pixel at this place of every window."""
    rows, columns = (_line(*line, stride) for line in zip(at, x.shape[-2:], kernel, strict=True))
    return x[..., rows, columns]
