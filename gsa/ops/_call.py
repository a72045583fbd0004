"""One call of the attention op: what validation, dispatch and every backend are given."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Call", "Gradients", "Needed"]

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
    """The arguments of the op, in the order in which it is registered; what they mean: `gsa.ops.attend`.

    Attributes:
        query: [B, heads, Q, H, W, d].
        key, value: [B, heads, M, H, W, d].
        spatial: [P, U, V, d].
        pose: [Q, M, d].
        window: bool [U, V].
        seed: int64 scalar.
        regular: the regular form, in which P = Q; otherwise the summed one.
        dropout: probability.
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
