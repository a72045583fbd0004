"""The largest answer of all poses, with little to remember for its gradient."""

from typing import Any

import torch
from torch import Tensor

__all__ = ["strongest"]


def strongest(poses: Tensor, axis: int = 2) -> Tensor:
    """The maximum over the poses; those that have it in common share its gradient.

        y = max_h x(h),   ∂y/∂x(h) = 1/n where x(h) = y, which n poses are

    `torch.amax` keeps x and y for the gradient, of which one byte in four says all: which answers are largest. So y may
    be changed in place, as by activations.

    Args:
        poses: [B, C, P, H, W], or any other with poses on an axis.
        axis: 0 or more.

    Returns:
        [B, C, H, W]
    """
    has_gradient = torch.is_grad_enabled() and poses.requires_grad
    if not has_gradient or torch.compiler.is_compiling() or torch.jit.is_tracing():  # which take none of Python's
        return poses.amax(axis)
    maximum: Tensor = _Strongest.apply(poses, axis)[0]
    return maximum


class _Strongest(torch.autograd.Function):
    """The maximum, and which poses have it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(poses: Tensor, axis: int) -> tuple[Tensor, Tensor]:
        maximum = poses.amax(axis)
        return maximum, poses == maximum.unsqueeze(axis)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int], output: tuple[Tensor, Tensor]) -> None:
        ctx.axis = inputs[1]
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
        ctx.save_for_forward(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: None) -> tuple[Tensor, None]:
        tied = ctx.saved_tensors[0]
        return tied * (grad / tied.sum(ctx.axis, dtype=torch.int16)).unsqueeze(ctx.axis), None

    @staticmethod
    def jvp(ctx: Any, direction: Tensor, _: None) -> tuple[Tensor, None]:
        tied = ctx.saved_tensors[0]
        return (tied * direction).sum(ctx.axis) / tied.sum(ctx.axis, dtype=torch.int16), None
