"""Whether the numbers of a network are finite."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

__all__ = ["first_not_finite"]


def first_not_finite(state: Mapping[str, Any]) -> str | None:
    """The name of the first tensor with NaN or an infinite number in it, None if all are finite.

    Args:
        state: names and tensors, such as a network's `state_dict()`; values that are not tensors are passed over.
    """
    for name, value in state.items():
        if isinstance(value, Tensor) and not value.isfinite().all():
            return name
    return None
