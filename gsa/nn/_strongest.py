"""The largest answer of all poses, with little to remember for its gradient."""

from typing import Any

import torch
from torch import Tensor

__all__ = ["strongest"]


def strongest(poses: Tensor) -> Tensor:
    """The maximum over the poses; those that have it in common share its gradient.

        y = max_h x(h),   ∂y/∂x(h) = 1/n where x(h) = y, which n poses are

    `torch.amax` keeps x for the gradient, of which one byte in four says all: which answers are largest.

    Args:
        poses: [B, C, P, H, W]

    Returns:
        [B, C, H, W]
    """
    has_gradient = torch.is_grad_enabled() and poses.requires_grad
    if not has_gradient or torch.compiler.is_compiling() or torch.jit.is_tracing():  # which take none of Python's
        return poses.amax(2)
    maximum: Tensor = _Strongest.apply(poses)[0]
    return maximum


class _Strongest(torch.autograd.Function):
    """The maximum, and which poses have it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(poses: Tensor) -> tuple[Tensor, Tensor]:
        maximum = poses.amax(2, keepdim=True)
        return maximum.squeeze(2), poses == maximum

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
        ctx.save_for_forward(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: None) -> Tensor:
        tied = ctx.saved_tensors[0]
        return tied * (grad / tied.sum(2, dtype=torch.int16)).unsqueeze(2)

    @staticmethod
    def jvp(ctx: Any, direction: Tensor) -> tuple[Tensor, None]:
        tied = ctx.saved_tensors[0]
        return (tied * direction).sum(2) / tied.sum(2, dtype=torch.int16), None
