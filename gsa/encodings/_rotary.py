"""Phases instead of sums: rotary encoding with frequencies turned by the output pose."""

import math
from typing import Self

import torch
from einops import rearrange
from torch import Tensor, nn

from gsa.encodings._encoding import Encoded, Encoding
from gsa.encodings._filled import fill
from gsa.encodings._neighbourhood import Neighbourhood
from gsa.groups import Group

__all__ = ["RotaryEncoding"]


class RotaryEncoding(Encoding):
    """Scores q(i, h)ᵀ R(ω·h⁻¹(j − i)) (k(j, h̃) + ρ_H(h⁻¹h̃)), R turning channels f and f + d/2 together.

    As R(ω·h⁻¹(j − i)) = R(ω·h⁻¹i)ᵀ R(ω·h⁻¹j), queries and keys are turned by their own positions, anew for each
    output pose h. (Turning a key by its own pose h̃ instead would pass every test of the point group and break
    translations.) For the lifting and regular forms; the summed form would couple h with h̃.

    Source: Su et al. 2021 (rotary position embedding), in the plane and acted upon by the group.

    Args:
        group: acts on the positions; or its name.
        head_dim: d, even.
        lifting: whether it is made for a lifting layer.

    Raises:
        ValueError: odd head_dim.
    """

    name = "rotary"
    forms = ("lifting", "regular")
    limit = "depends on output and key pose together and "
    keeps = frozenset({"translations", "poses"})
    has_products = True
    makes_poses_heads = True

    def __init__(self, group: Group | str, head_dim: int, lifting: bool = False) -> None:
        if head_dim % 2:
            raise ValueError(f"a rotary encoding turns pairs of channels: head_dim must be even, but got {head_dim}")
        super().__init__(group, head_dim, lifting)
        self.frequencies = nn.Parameter(torch.empty(head_dim // 2, 2))
        self.pose_vectors = None if lifting else nn.Parameter(torch.empty(self.group.order, head_dim))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """The frequencies as they start, and pose vectors drawn anew."""
        fill(self.frequencies, _spiral(len(self.frequencies)))
        if self.pose_vectors is not None:
            nn.init.normal_(self.pose_vectors)

    @classmethod
    def of_layer(cls, group: Group, head_dim: int, neighbourhood: Neighbourhood, form: str, num_heads: int = 1) -> Self:
        return cls(group, head_dim, lifting=form == "lifting")

    def forward(self, query: Tensor, key: Tensor, value: Tensor, neighbourhood: Neighbourhood) -> Encoded:
        """Output poses move in front of the heads: query [B, |H|·heads, 1, H, W, d], keys likewise."""
        extent = neighbourhood.extent(*query.shape[-3:-1])
        query, key, value = self.products(query, key, value, neighbourhood)
        spatial = query.new_zeros(1, *extent, self.head_dim)
        return Encoded(query, key, value, spatial, query.new_zeros(1, key.shape[2], self.head_dim))

    def products(
        self, query: Tensor, key: Tensor, value: Tensor, neighbourhood: Neighbourhood
    ) -> tuple[Tensor, Tensor, Tensor]:
        height, width = query.shape[-3:-1]
        phase = self._phases(neighbourhood, height, width, self.frequencies)
        phase = rearrange(phase, "p y x f -> p 1 1 y x f")

        # Lifting has one query for all output poses; a group layer has one for each.
        query = rearrange(query, "b e p y x d -> b p e 1 y x d")
        key = key[:, None]
        if self.pose_vectors is not None:
            key = key + rearrange(self.pose_vectors[self.relative_pose].to(key.dtype), "p m d -> p 1 m 1 1 d")
        query, key = _turn(query, phase).to(query.dtype), _turn(key, phase).to(key.dtype)
        value = value[:, None].expand_as(key)
        query, key, value = (rearrange(t, "b p e m y x d -> b (p e) m y x d") for t in (query, key, value))
        return query, key, value


def _turn(x: Tensor, phase: Tensor) -> Tensor:
    """R(phase) x: channels f and f + d/2 form the pair that is turned by phase[..., f]."""
    first, second = x.chunk(2, dim=-1)
    cosine, sine = phase.cos(), phase.sin()
    return torch.cat((first * cosine - second * sine, first * sine + second * cosine), dim=-1)


def _spiral(count: int) -> Tensor:
    """`count` plane frequencies: lengths from π down to π/8 per radius, each turned by the golden angle."""
    steps = torch.arange(count, dtype=torch.get_default_dtype())
    length = math.pi * 8 ** (-steps / max(count - 1, 1))
    angle = steps * math.pi * (3 - math.sqrt(5))
    return torch.stack((length * angle.cos(), length * angle.sin()), dim=-1)
