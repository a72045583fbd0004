"""States of optimizers that earlier versions have saved."""

from typing import Any

from torch import Tensor

__all__ = ["without_empty"]


def without_empty(state: dict[str, Any], count: int) -> dict[str, Any]:
    """Without the entries of parameters of no numbers, which lifting layers had until 26 November 2026.

    Args:
        state: the `state_dict` of an optimizer.
        count: of the parameters that there are now. Of more, those were empty of which nothing is remembered: all were
            positions, which are the last group, and of the lifting layer, which comes first in it.
    """
    indices = [index for group in state["param_groups"] for index in group["params"]]
    empty = {
        index
        for index, values in state["state"].items()
        if any(isinstance(value, Tensor) and not value.numel() for value in values.values())
    }
    unknown = [index for index in state["param_groups"][-1]["params"] if index not in state["state"]]
    empty.update(unknown[: max(len(indices) - len(empty) - count, 0)])
    groups = [
        group | {"params": [index for index in group["params"] if index not in empty]}
        for group in state["param_groups"]
    ]
    kept = {index: values for index, values in state["state"].items() if index not in empty}
    return state | {"state": kept, "param_groups": groups}
