"""Vectors in and out of features with poses: arrows, axes, and what else has a direction."""

from collections.abc import Callable

import torch
from torch import Tensor

from gsa import groups
from gsa._checks import check_floating
from gsa._tables import WithTables
from gsa.groups import Group

__all__ = ["PosesToVectors", "VectorsToPoses"]


class _Vectors(WithTables):
    """The representation of a group on vectors, in pairs of channels."""

    __call__: Callable[..., Tensor]
    representation: Tensor

    def __init__(self, group: Group | str, fold: int = 1) -> None:
        super().__init__()
        self.group, self.fold = groups.group(group), fold
        self.keep_table("representation", self.group.representation(fold))

    def _turned(self, pairs: str, vectors: Tensor) -> Tensor:
        """A sum over pairs of channels: "hxy, …" with the matrices first, vectors as [B, K, 2, …]."""
        table = self.representation
        if vectors.dtype in (torch.float64, torch.complex128) and table.dtype != torch.float64:
            table = self._exact["representation"]  # without parameters, nobody may have cast this
        return torch.einsum(pairs, table.to(vectors), vectors.unflatten(1, (-1, 2))).flatten(1, 2)

    def extra_repr(self) -> str:
        return self.group.name + (f", fold={self.fold}" if self.fold != 1 else "")


class PosesToVectors(_Vectors):
    """Vectors that turn with the picture, of a feature with poses.

        v(i) = 1/|H| Σ_h ρ(h) f(i, h)

    If f moves as features do, v(i) of the moved picture is ρ(g) v(g⁻¹ i). Two channels make a vector, (x, y), x to the
    right and y up; rows run down. What maps features to those channels, such as `nn.Conv3d(C, 2, 1)`, is the same in
    every pose; a single channel times a fixed direction would do only where the group turns by more than one axis.

    Source: the equivariant linear maps from the regular representation to ρ; Cohen & Welling, Steerable CNNs, ICLR
    2017.

    Args:
        group: the point group H, or its name.
        fold: of the directions: 1 of arrows, 2 of axes, which are the same after half a turn; see
            `gsa.groups.Group.representation`.

    Shapes:
        [B, 2K, |H|, …] → [B, 2K, …], such as [B, 2K, |H|, H, W] → [B, 2K, H, W]

    Raises:
        ValueError: a feature of another group, or an odd number of channels; a fold that is not positive.
    """

    def forward(self, feature: Tensor) -> Tensor:
        check_floating(feature, "vectors of poses")
        if feature.ndim < 3 or feature.shape[2] != self.group.order or feature.shape[1] % 2:
            raise ValueError(
                f"vectors are made of features [B, 2K, {self.group.order}, …], two channels each, poses on axis 2, but "
                f"got the shape {list(feature.shape)}"
            )
        return self._turned("hxy,bkyh...->bkx...", feature) / self.group.order


class VectorsToPoses(_Vectors):
    """A feature with poses, of vectors that turn with the picture, such as wind or flow.

        f(i, h) = ρ(h)⁻¹ v(i)

    It moves as features do: every pose sees the vectors in its own coordinates. Group layers go on from it, as from a
    lifting layer, and `PosesToVectors` leads back.

    Args:
        group: the point group H, or its name.
        fold: of the directions, as in `PosesToVectors`.

    Shapes:
        [B, 2K, H, W] → [B, 2K, |H|, H, W]

    Raises:
        ValueError: an odd number of channels, or another shape; a fold that is not positive.
    """

    def forward(self, vectors: Tensor) -> Tensor:
        check_floating(vectors, "poses of vectors")
        if vectors.ndim != 4 or vectors.shape[1] % 2:
            raise ValueError(
                f"vectors are maps [B, 2K, H, W], two channels each, (x, y), but got the shape {list(vectors.shape)}"
            )
        return self._turned("hyx,bky...->bkxh...", vectors)
