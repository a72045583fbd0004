"""Orders: permutations as lists of places."""

import torch
from torch import Tensor

__all__ = ["check_order"]


def check_order(order: Tensor, length: int | None = None) -> None:
    """Refuse what does not hold each of 0 to n − 1 once.

    Args:
        order: of places.
        length: n; any when None.

    Raises:
        ValueError: no permutation, or one of another length.
    """
    whole = not order.is_floating_point() and order.dtype != torch.bool
    if order.ndim != 1 or not whole or order.sort().values.tolist() != list(range(len(order))):
        raise ValueError(
            f"an order is one list that holds each of 0 to n − 1 once, as [1, 0, 2] does, but got {order.tolist()}"
        )
    if length is not None and len(order) != length:
        raise ValueError(f"expected an order of {length} places, but got one of {len(order)}")
