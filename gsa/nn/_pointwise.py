"""One linear map of the channels, the same at every pixel and pose."""

import math

import torch
from torch import Tensor, nn

__all__ = ["PointwiseLinear"]


class PointwiseLinear(nn.Linear):
    """y(i, h) = W x(i, h) + b: [B, C, …] → [B, C′, …]; commutes with every permutation of pixels and poses.

    Weights start as N(0, 2/C), biases at 0.
    """

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=math.sqrt(2 / self.in_features))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 2:
            return super().forward(x)
        # One product W·x for each sample, which leaves the pixels where they are in memory.
        weight, columns = self.weight.expand(x.shape[0], -1, -1), x.flatten(2)
        y = weight @ columns if self.bias is None else torch.baddbmm(self.bias[:, None], weight, columns)
        return y.unflatten(2, x.shape[2:])
