"""How large a difference is, relative to what it is a difference of."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

__all__ = ["norm", "relative_error", "size", "zero_beside"]


def relative_error(actual: Tensor, expected: Tensor, scale: Tensor | None = None) -> float:
    """‖actual − expected‖ / scale, in float64; the scale is ‖expected‖ unless another is given.

    Raises:
        ValueError: tensors of different shapes.
    """
    if actual.shape != expected.shape:
        raise ValueError(f"expected the shape {list(expected.shape)}, but got {list(actual.shape)}")
    scale = norm(expected) if scale is None else _precise(scale)
    return (norm(_precise(actual) - _precise(expected)) / scale.clamp_min(torch.finfo(torch.float64).tiny)).item()


def norm(x: Tensor) -> Tensor:
    """‖x‖ in float64, of numbers so small or large, too, that their squares are not to be told."""
    x = _precise(x)
    largest = x.abs().max() if x.numel() else x.new_zeros(())
    return largest * (x / largest).norm() if 0 < largest < torch.inf else x.norm()


def zero_beside(gradients: Iterable[Tensor]) -> float:
    """What is left of sums that cancel counts as zero beside this: ε^¼ times the largest norm."""
    return max((torch.finfo(g.dtype).eps ** 0.25 * norm(g).item() for g in gradients), default=0.0)


def _precise(x: Tensor) -> Tensor:
    x = x.cpu() if x.device.type == "mps" else x  # which knows no float64
    return x.to(torch.complex128) if x.is_complex() else x.double()


def size(error: float) -> float:
    """An error to compare with others; what is no number is larger than any."""
    return error if math.isfinite(error) else math.inf
