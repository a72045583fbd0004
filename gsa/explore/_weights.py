"""Permuted weights, equal starts and biases: what the tab of the weights shows."""

from typing import Any

from gsa.explore._biases import biases
from gsa.explore._reordered import reordered
from gsa.explore._starts import starts

__all__ = ["weights"]


def weights(steps: int = 40, orders: int = 3) -> dict[str, Any]:
    """Statements about weights, measured on small networks that are trained for it.

    Args:
        steps: of training; an MLP, which is faster, takes four times as many.
        orders: of a transformer's features.

    Returns:
        Plain values for JSON: "reordered" (a transformer with weights PᵀWP, on data in that order), "starts" (hidden
        units that start equal) and "biases" (which of them do nothing).

    Raises:
        ValueError: less than one step or order.
    """
    if steps < 1 or orders < 1:
        raise ValueError(f"there must be at least 1 step and 1 order, but got {steps} and {orders}")
    return {"reordered": reordered(steps, orders), "starts": starts(4 * steps), "biases": biases()}
