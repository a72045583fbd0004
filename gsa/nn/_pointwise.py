"""One linear map of the channels, the same at every pixel and pose."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from gsa._checks import check_floating, check_positive
from gsa._hooked import refuse_made

__all__ = ["PointwiseLinear", "pointwise"]


class PointwiseLinear(nn.Linear):
    """y(i, h) = W x(i, h) + b: [B, C, …] → [B, C′, …]; commutes with every permutation of pixels and poses.

    Weights start as N(0, 2/C), biases at 0.

    Args:
        in_features, out_features: C and C′, positive.
        bias: whether there is b.
        silent: how many of the last channels of the input start with weights of zero.

    Raises:
        ValueError: an argument or an input out of its range.
    """

    __call__: Callable[..., Tensor]

    def __init__(self, in_features: int, out_features: int, bias: bool = True, silent: int = 0) -> None:
        check_positive(in_features=in_features, out_features=out_features)
        self.silent = silent
        super().__init__(in_features, out_features, bias)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=math.sqrt(2 / self.in_features))
        nn.init.zeros_(self.weight.detach()[:, self.in_features - self.silent :])
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.in_features:
            raise ValueError(
                f"a pointwise map of {self.in_features} channels takes [B, {self.in_features}, …], but got the shape "
                f"{list(x.shape)}"
            )
        check_floating(x, "a pointwise map")
        return super().forward(x) if x.ndim == 2 else pointwise(x, self.weight, self.bias)

    @property
    def plain_weight(self) -> Tensor:
        """The weight, for those that multiply with it themselves and do not call this map, nor hooks on it.

        Raises:
            ValueError: it is made anew by a hook whenever the map is called.
        """
        refuse_made(self, "weight")
        return self.weight

    @property
    def plain_bias(self) -> Tensor | None:
        """The bias, likewise."""
        refuse_made(self, "bias")
        return self.bias

    def in_parts(self, x: Tensor, sizes: Sequence[int]) -> list[Tensor]:
        """The output in parts of these sizes, computed on their own: cut apart, their gradients would be copied."""
        biases = [None] * len(sizes) if (bias := self.plain_bias) is None else bias.split(sizes)
        return [pointwise(x, *part) for part in zip(self.plain_weight.split(sizes), biases, strict=True)]


def pointwise(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """W x + b at every pixel and pose; one product for each sample leaves the pixels where they are in memory.

    Raises:
        ValueError: features on another device than the weights.
    """
    if x.device != weight.device:
        raise ValueError(f"features must be on the device of the weights, {weight.device}, but are on {x.device}")
    weights, columns = weight.expand(x.shape[0], -1, -1), x.flatten(2)
    y = torch.bmm(weights, columns) if bias is None else torch.baddbmm(bias[:, None], weights, columns)
    return y.unflatten(2, x.shape[2:])
