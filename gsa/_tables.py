"""Tables that a layer has of its group: neither learned nor saved."""

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn

__all__ = ["WithTables"]


class WithTables(nn.Module):
    """A module with tables, which are moved and cast with it, always from what they were at first: nothing is lost.

    Tables of floats are of float32 at least: rounded to halves, they would be of other places.

    They are no buffers, for `torch.optim.swa_utils.AveragedModel` averages these: whole numbers would become others.
    A module on the device "meta", from which no file brings them back, has them on the CPU.
    """

    __call__: Callable[..., Any]

    def __init__(self) -> None:
        super().__init__()
        self._exact: dict[str, Tensor] = {}

    def keep_table(self, name: str, table: Tensor) -> None:
        """Make a table an attribute: where parameters that are made now lie, and of their dtype if it is of floats."""
        self._exact[name] = table.detach().cpu()
        like = torch.empty(0)
        setattr(self, name, _like(table, like if table.is_floating_point() else like.to(table.dtype)))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        for name, exact in self._exact.items():
            setattr(self, name, _like(exact, fn(getattr(self, name))))
        return self


def _like(table: Tensor, other: Tensor) -> Tensor:
    dtype = torch.promote_types(other.dtype, torch.float32) if table.is_floating_point() else other.dtype
    return table.to("cpu" if other.device.type == "meta" else other.device, dtype)
