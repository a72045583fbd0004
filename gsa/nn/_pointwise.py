"""One linear map of the channels, the same at every pixel and pose."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

__all__ = ["PointwiseLinear"]


class PointwiseLinear(nn.Linear):
    """y(i, h) = W x(i, h) + b: [B, C, …] → [B, C′, …]; commutes with every permutation of pixels and poses.

    Weights start as N(0, 2/C), biases at 0.
    """

    __call__: Callable[..., Tensor]

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=math.sqrt(2 / self.in_features))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if x.ndim == 2 else _pointwise(x, self.weight, self.bias)

    def in_parts(self, x: Tensor, count: int) -> list[Tensor]:
        """The output in `count` equal parts, computed on their own: cut apart, their gradients would be copied."""
        biases = [None] * count if self.bias is None else self.bias.chunk(count)
        return [_pointwise(x, *part) for part in zip(self.weight.chunk(count), biases, strict=True)]


def _pointwise(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """One product W·x for each sample, which leaves the pixels where they are in memory."""
    weights, columns = weight.expand(x.shape[0], -1, -1), x.flatten(2)
    y = weights @ columns if bias is None else torch.baddbmm(bias[:, None], weights, columns)
    return y.unflatten(2, x.shape[2:])
