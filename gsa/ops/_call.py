"""One call of the attention op: what validation, dispatch and every backend are given."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["Call", "Gradients", "Needed", "of_backward", "packed", "unpacked"]

# Of a call's five tensors, in their order; None where nobody has asked.
Gradients = tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None, Tensor | None]


class Needed(NamedTuple):
    """Of which tensors of a call the gradients are asked for."""

    query: bool = True
    key: bool = True
    value: bool = True
    spatial: bool = True
    pose: bool = True


class Call(NamedTuple):
    """The arguments of the op; what they mean: `gsa.ops.attend`.

    Attributes:
        query: [B, heads, Q, H, W, d].
        key, value: [B, heads, M, H, W, d].
        spatial: [P, U, V, d].
        pose: [Q, M, d].
        window: bool [U, V].
        seed: int64 scalar.
        regular: the regular form, in which P = Q; otherwise the summed one.
        dropout: probability.
        crop: pixels at every border that ask nothing, and are not in the result.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    spatial: Tensor
    pose: Tensor
    window: Tensor
    seed: Tensor
    regular: bool
    dropout: float
    crop: int = 0

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The five that have gradients."""
        return self[:5]

    @property
    def slices(self) -> int:
        """Heads of samples: the attention of each is its own."""
        return self.query.shape[0] * self.query.shape[1]

    @property
    def sum_dtype(self) -> torch.dtype:
        """What sums are taken in: float64 for float64, else float32."""
        return torch.float64 if self.query.dtype == torch.float64 else torch.float32

    def with_tensors(self, query: Tensor, key: Tensor, value: Tensor, spatial: Tensor, pose: Tensor) -> Call:
        """The same call with these five tensors."""
        return Call(query, key, value, spatial, pose, *self[5:])

    def to(self, dtype: torch.dtype) -> Call:
        """The same call with its five tensors in this dtype."""
        return self.with_tensors(*[tensor.to(dtype) for tensor in self[:5]])


def packed(call: Call, backend: str) -> tuple[Any, ...]:
    """A call, and who serves it, in the order in which the op is registered: crop came last, and may be left out."""
    return *call[:9], backend, call.crop


def unpacked(*arguments: Any) -> tuple[Call, str]:
    """The call, and who serves it, from the arguments of the op."""
    return Call(*arguments[:9], *arguments[10:]), arguments[9]


def of_backward(*arguments: Any) -> tuple[tuple[Any, ...], Needed]:
    """The arguments of the op, and what is needed, from those of its backward op but for the gradient."""
    return (*arguments[:10], *arguments[11:]), Needed(*arguments[10])
