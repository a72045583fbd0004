"""Other orders of tokens, and of features."""

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from gsa.symmetry._action import Action
from gsa.symmetry._orders import check_order

__all__ = ["FeaturePermutations", "TokenPermutations"]

_SHORT = 6  # an order that is shown


class _Permutations(Action):
    outputs: str  # that can be moved, in words

    def __init__(self, *orders: Tensor | Sequence[int]) -> None:
        if not orders:
            raise ValueError("expected at least one order")
        self.orders = [o if isinstance(o, Tensor) else torch.as_tensor(o, device="cpu") for o in orders]
        for order in self.orders:
            check_order(order)
        if len({len(order) for order in self.orders}) != 1:
            raise ValueError(f"expected orders of one length, but got {[len(order) for order in self.orders]}")
        self.elements = [
            " ".join(map(str, order.tolist())) if len(order) <= _SHORT else f"order {number}"
            for number, order in enumerate(self.orders, start=1)
        ]
        self.exact = range(len(orders))

    @classmethod
    def random(cls, length: int, count: int = 2, seed: int = 0, **keywords: Any) -> Self:
        """Some random orders.

        Args:
            length: of each.
            count: how many.
            seed: the same seed gives the same orders.
            keywords: others of the class, such as axis.
        """
        generator = torch.Generator().manual_seed(seed)
        return cls(*(torch.randperm(length, generator=generator, device="cpu") for _ in range(count)), **keywords)

    @property
    def movable(self) -> str:
        return self.outputs

    def _ordered(self, x: Tensor, axis: int, element: int, first: int = 0) -> Tensor:
        order = self.orders[element]
        order = torch.cat((torch.arange(first, device=order.device), order + first)).to(x.device)
        if len(order) != x.shape[axis]:
            raise ValueError(f"these orders are of {len(order)} {self.name.split()[-1]}, but x is {list(x.shape)}")
        return x.index_select(axis, order)


class TokenPermutations(_Permutations):
    """Tokens in another order, PZ.

    For inputs [B, N, C], outputs [B, N, C′] are tokens, [B, 1 + N, C′] are tokens behind a class token, which stays,
    and [B] and [B, K] have to be invariant. A module that takes batches second, as `nn.TransformerEncoder` does by
    default, is given [N, B, C] and axis 0.

    Args:
        orders: int64 [N] each, PZ = Z[:, order].
        axis: of the tokens, 1 or 0; the batch is the other.

    Raises:
        ValueError: no order, or one that is no permutation; when it acts, tokens of another number.
    """

    name = "orders of tokens"
    outputs = "[B] or [B, K], or as many tokens, [B, N, C] or, behind a class token, [B, 1 + N, C]"

    def __init__(self, *orders: Tensor | Sequence[int], axis: int = 1) -> None:
        super().__init__(*orders)
        if axis not in (0, 1):
            raise ValueError(f"tokens are on axis 1, or on axis 0 where the batch comes second, but got {axis}")
        self.axis = axis

    def act(self, x: Tensor, element: int) -> Tensor:
        if x.ndim != 3:
            raise ValueError(f"tokens are [B, N, C], but got the shape {list(x.shape)}")
        return self._ordered(x, self.axis, element)

    def moved(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        batch = 1 - self.axis
        if output.ndim in (1, 2):
            return output if output.shape[0] == shape[batch] else None
        if output.ndim != 3 or output.shape[batch] != shape[batch]:
            return None
        first = output.shape[self.axis] - shape[self.axis]
        return self._ordered(output, self.axis, element, first) if first in (0, 1) else None


class FeaturePermutations(_Permutations):
    """Features in another order, ZP.

    Of inputs [B, N, C] or [B, C], outputs whose last axis is C as well have to follow; others are left out.

    Args:
        orders: int64 [C] each, ZP = Z[..., order].

    Raises:
        ValueError: no order, or one that is no permutation; when it acts, features of another number.
    """

    name = "orders of features"
    outputs = "as many features on the last axis"

    def act(self, x: Tensor, element: int) -> Tensor:
        if x.ndim not in (2, 3):
            raise ValueError(f"features are the last axis of [B, N, C] or [B, C], but got the shape {list(x.shape)}")
        return self._ordered(x, -1, element)

    def moved(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        if output.ndim < 2 or output.shape[0] != shape[0] or output.shape[-1] != shape[-1]:
            return None
        return self._ordered(output, -1, element)
