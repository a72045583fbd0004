"""A free vector for each relative position on the grid."""

from typing import Self

import torch
from torch import Tensor, nn

from gsa.encodings._encoding import AdditiveEncoding
from gsa.encodings._neighbourhood import Neighbourhood
from gsa.groups import Group

__all__ = ["TableEncoding"]


class TableEncoding(AdditiveEncoding):
    """ρ_x(u) = table[u], one learned vector for each of the n×n offsets; poses permute its entries.

    Args:
        group: on the grid only (Z2, R2, R4 and mirrored): others carry offsets between the entries.
        head_dim: d.
        neighbourhood: a finite window, whose offsets the table lists.
        lifting: whether it is made for a lifting layer.

    Raises:
        ValueError: a group that leaves the grid, or global attention, which has no fixed set of offsets.
    """

    name = "table"

    def __init__(self, group: Group | str, head_dim: int, neighbourhood: Neighbourhood, lifting: bool = False) -> None:
        super().__init__(group, head_dim, lifting)
        if not self.group.is_on_grid:
            raise ValueError(
                "a table encoding has entries on the pixel grid only, so its group must map the grid to itself "
                f"(Z2, R2, R4, Z2M, R2M, R4M), but got {self.group.name}; use 'functional', 'fourier' or 'quadratic'"
            )
        if neighbourhood.size is None:
            raise ValueError(
                "a table encoding needs a finite neighbourhood (an odd number of pixels), but got None (global); "
                "use 'functional', 'fourier' or 'quadratic'"
            )
        self.side = neighbourhood.size
        self.table = nn.Parameter(torch.empty(self.side, self.side, head_dim))
        nn.init.normal_(self.table)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.normal_(self.table)

    @classmethod
    def of_layer(cls, group: Group, head_dim: int, neighbourhood: Neighbourhood, form: str, num_heads: int = 1) -> Self:
        return cls(group, head_dim, neighbourhood, lifting=form == "lifting")

    def check_fits(
        self, group: Group, head_dim: int, neighbourhood: Neighbourhood, form: str, num_heads: int = 1
    ) -> None:
        super().check_fits(group, head_dim, neighbourhood, form, num_heads)
        if self.side != neighbourhood.size:
            raise ValueError(
                f"the table must list this layer's neighbourhood ({neighbourhood.size}), "
                f"but lists {self.side}×{self.side}"
            )

    def spatial(self, offsets: Tensor) -> Tensor:
        if offsets.shape[0] != self.side:
            raise ValueError(f"the table lists {self.side}×{self.side} offsets, but got {list(offsets.shape[:2])}")
        half = (self.side - 1) / 2
        x, y = (self.acted(offsets) * max(half, 1)).unbind(-1)
        return self.table[(half - y).round().long(), (half + x).round().long()]
