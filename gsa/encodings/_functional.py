"""The paper's encoding: small networks of the acted coordinates and a vector for each relative pose."""

import math

import torch
from torch import Tensor, nn

from gsa._checks import check_positive
from gsa.encodings._encoding import AdditiveEncoding
from gsa.groups import Group

__all__ = ["FunctionalEncoding"]


class FunctionalEncoding(AdditiveEncoding):
    """ρ(u, h̃) = [row(u_y), column(u_x), vector(h̃)], evaluated at the acted offset u = h⁻¹(j − i).

    Row and column are networks 1 → hidden → d/3 (linear, LayerNorm, SiLU, linear). They are functions of a
    continuous offset, so any rotation is evaluated exactly, without interpolation ("steerable by nature").
    In a lifting layer, rows and columns share the d channels evenly.

    Source: Romero & Cordonnier 2021, as their public code builds it, with the group term corrected to ĥ⁻¹h̃; the
    first biases are drawn from U(−1, 1), since LayerNorm of a multiple of x alone keeps only the sign of x.

    Args:
        group: acts on the offsets; or its name.
        head_dim: d, at least 3 (2 in a lifting layer).
        lifting: whether it is made for a lifting layer.
        hidden: width of the two networks.

    Raises:
        ValueError: a head_dim that is too small, or a width that is not positive.
    """

    name = "functional"

    def __init__(self, group: Group | str, head_dim: int, lifting: bool = False, hidden: int = 16) -> None:
        parts = ("rows", "columns") if lifting else ("rows", "columns", "poses")
        share = head_dim // len(parts)
        if share < 1:
            raise ValueError(
                f"a functional encoding splits head_dim into {', '.join(parts[:-1])} and {parts[-1]}: it must be at "
                f"least {len(parts)}, but got {head_dim}"
            )
        check_positive(hidden=hidden)
        super().__init__(group, head_dim, lifting, pose_dim=head_dim - 2 * share)
        self.row = _coordinate_network(hidden, share)
        self.column = _coordinate_network(hidden, head_dim - share if lifting else share)

    def start_without_biases(self) -> None:
        """The first biases at 0, as the public code starts them."""
        for first in (self.row[0], self.column[0]):
            assert isinstance(first, _Linear)
            first.spread = 0.0
            nn.init.zeros_(first.bias)

    def spatial(self, offsets: Tensor) -> Tensor:
        first = self.row[0]  # `parameters()` of a replica of nn.DataParallel has none
        assert isinstance(first, nn.Linear)
        x, y = self.acted(offsets).to(first.weight.dtype).split(1, dim=-1)
        encoded = torch.cat((self.row(y), self.column(x)), dim=-1)
        return nn.functional.pad(encoded, (0, self.head_dim - encoded.shape[-1]))


def _coordinate_network(hidden: int, out_features: int) -> nn.Sequential:
    first, last = _Linear(1, hidden), _Linear(hidden, out_features)
    first.spread, last.spread = 1.0, 0.0  # without biases, LayerNorm would leave only the sign of the coordinate
    first.reset_parameters()
    last.reset_parameters()
    return nn.Sequential(first, nn.LayerNorm(hidden), nn.SiLU(), last)


class _Linear(nn.Linear):
    """Weights start as N(0, 2/inputs), biases as U(−spread, spread)."""

    spread: float | None = None  # while it is being made, as any linear map is

    def reset_parameters(self) -> None:
        if self.spread is None:
            super().reset_parameters()
            return
        nn.init.normal_(self.weight, std=math.sqrt(2 / self.in_features))
        if self.spread:
            nn.init.uniform_(self.bias, -self.spread, self.spread)
        else:
            nn.init.zeros_(self.bias)
