"""Fields in and out of features with poses: directions, and whatever else a group acts on."""

from collections.abc import Callable

import torch
from torch import Tensor

from gsa import groups
from gsa._checks import check_floating
from gsa._tables import WithTables
from gsa.groups import Field, Group

__all__ = ["FieldsToPoses", "PosesToFields"]


class _Fields(WithTables):
    """The representation of a group on a field."""

    __call__: Callable[..., Tensor]
    representation: Tensor

    def __init__(self, group: Group | str, field: Field = "vector") -> None:
        super().__init__()
        self.group, self.field = groups.group(group), field
        self.keep_table("representation", self.group.representation(field))
        self.numbers = self.representation.shape[-1]

    def _moved(self, equation: str, fields: Tensor) -> Tensor:
        """A sum over the numbers of fields: "hxy, …" with the matrices first, fields as [B, K, N, …]."""
        table = self.representation
        if fields.dtype in (torch.float64, torch.complex128) and table.dtype != torch.float64:
            table = self._exact["representation"]  # without parameters, nobody may have cast this
        return torch.einsum(equation, table.to(fields), fields.unflatten(1, (-1, self.numbers))).flatten(1, 2)

    def _are_fields(self, x: Tensor) -> bool:
        return x.shape[1] > 0 and x.shape[1] % self.numbers == 0

    def extra_repr(self) -> str:
        return f"{self.group.name}, {self.field!r}"


class PosesToFields(_Fields):
    """A field that moves with the picture, of a feature with poses.

        v(i) = 1/|H| Σ_h ρ(h) f(i, h)

    If f moves as features do, v(i) of the moved picture is ρ(g) v(g⁻¹ i). What maps features to the numbers of the
    field, such as `nn.Conv3d(C, 2, 1)` to vectors, is the same in every pose; a single channel times a fixed direction
    would do only where the group turns by more than one axis.

    Source: the equivariant linear maps from the regular representation to ρ; Cohen & Welling, Steerable CNNs, ICLR
    2017.

    Args:
        group: the point group H, or its name.
        field: what the N channels are, as in `gsa.groups.Group.representation`: "vector", (x, y) with x to the right
            and y up; "axis"; ["scalar", "vector"], …

    Shapes:
        [B, K·N, |H|, …] → [B, K·N, …] for K of the field, such as [B, 2, |H|, H, W] → [B, 2, H, W] for a vector

    Raises:
        ValueError: a feature of another group, or of no multiple of N channels; a field of no such kind.
    """

    @property
    def output_field(self) -> Field:
        """The field, which reports of symmetry ask for (`gsa.symmetry.GroupAction`)."""
        return self.field

    def forward(self, feature: Tensor) -> Tensor:
        check_floating(feature, "fields of poses")
        if feature.ndim < 3 or feature.shape[2] != self.group.order or not self._are_fields(feature):
            raise ValueError(
                f"fields ({self.field!r}: {self.numbers} channels each) are made of features [B, {self.numbers}·K, "
                f"{self.group.order}, …], poses on axis 2, but got the shape {list(feature.shape)}"
            )
        return self._moved("hxy,bkyh...->bkx...", feature) / self.group.order


class FieldsToPoses(_Fields):
    """A feature with poses, of a field that moves with the picture, such as wind or flow.

        f(i, h) = ρ(h)⁻¹ v(i)

    It moves as features do: every pose sees the vectors in its own coordinates. Group layers go on from it, as from a
    lifting layer, and `PosesToFields` leads back.

    Args:
        group: the point group H, or its name.
        field: what the N channels are, as in `PosesToFields`.

    Shapes:
        [B, K·N, H, W] → [B, K·N, |H|, H, W]

    Raises:
        ValueError: no multiple of N channels, or another shape; a field of no such kind.
    """

    def forward(self, fields: Tensor) -> Tensor:
        check_floating(fields, "poses of fields")
        if fields.ndim != 4 or not self._are_fields(fields):
            raise ValueError(
                f"fields ({self.field!r}: {self.numbers} channels each) are maps [B, {self.numbers}·K, H, W], but got "
                f"the shape {list(fields.shape)}"
            )
        return self._moved("hyx,bky...->bkxh...", fields)
