"""Positions written into the features: the control that breaks every symmetry."""

import math

import torch
from torch import Tensor, nn

from gsa.encodings._encoding import Encoding
from gsa.groups import Group

__all__ = ["AbsoluteEncoding"]


class AbsoluteEncoding(Encoding):
    """x(i, ·) → x(i, ·) + p(i) before the projections, the same for all poses; keeps no symmetry.

    None is claimed, that is: along an axis along which p does not vary, as of one channel of sines, shifts are kept.

    Args:
        group, head_dim: as for any encoding.
        learned: (channels, H, W) of a learned table p, for maps of exactly this size; None takes sines and
            cosines of the row and the column, with wavelengths from 2π up to less than 2π·10⁴ pixels, the more
            channels the nearer (Vaswani et al. 2017), for maps of any size.

    Raises:
        ValueError: when it is given features of another size than it was learned for.
    """

    name = "absolute"
    keeps = frozenset()

    def __init__(self, group: Group | str, head_dim: int, learned: tuple[int, int, int] | None = None) -> None:
        super().__init__(group, head_dim)
        self.table = nn.Parameter(torch.empty(learned)) if learned else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew, N(0, 0.02²), if it is learned."""
        if self.table is not None:
            nn.init.normal_(self.table, std=0.02)

    def embed(self, features: Tensor) -> Tensor:
        channels, (height, width) = features.shape[1], features.shape[-2:]
        if self.table is None:
            positions = _sinusoids(channels, height, width, features)
        elif self.table.shape == (channels, height, width):
            positions = self.table
        else:
            raise ValueError(
                f"this absolute encoding was learned for {list(self.table.shape)} (channels, rows, columns), "
                f"but got features of {[channels, height, width]}"
            )
        return features + (positions if features.ndim == 4 else positions[:, None]).to(features.dtype)


def _sinusoids(channels: int, height: int, width: int, like: Tensor) -> Tensor:
    """Channel c holds sin or cos of the row or the column at frequency 10⁴^(−4⌊c/4⌋/channels): [C, H, W]."""
    dtype = torch.promote_types(like.dtype, torch.float32)  # halves do not tell pixels apart
    rows = torch.arange(height, device=like.device, dtype=dtype)[:, None].expand(height, width)
    columns = torch.arange(width, device=like.device, dtype=dtype).expand(height, width)
    waves = []
    for channel in range(channels):
        frequency = 10_000 ** (-4 * (channel // 4) / channels)
        phase = frequency * (rows, columns)[channel % 2] + (math.pi / 2) * (channel % 4 // 2)
        waves.append(phase.sin())
    return torch.stack(waves)
