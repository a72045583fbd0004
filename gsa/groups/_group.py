"""A finite point group H of the plane; with all translations of the grid it makes G = Z² ⋊ H."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gsa._checks import check_positive
from gsa.groups._action import GridSteps, move, steps_on_grid
from gsa.groups._fields import Field, representation

__all__ = ["Element", "Group"]

_MOST = 4096  # rotations


class Group:
    """n rotations, with or without the left–right mirror M = diag(−1, 1).

    Element s·n + r is R(2πr/n)·Mˢ; element 0 is the identity; rotations are counter-clockwise, x points right
    and y up. A group holds no translations: those act on every layer through relative positions alone.

    Args:
        rotations: n, 1 or more.
        mirrored: whether M is in it.

    Attributes:
        name: the field's name for it, such as "R4" or "R8M".
        rotations, mirrored: as given.
        order: |H|.
        matrices: float64 [|H|, 2, 2], acting on (x, y); entries of quarter turns are exactly 0 and ±1.
        product: int64 [|H|, |H|], `product[g, h]` is the index of g·h.
        inverse: int64 [|H|], `inverse[g]` is the index of g⁻¹.

    Raises:
        ValueError: a number of rotations that is not positive, or too large.
    """

    name: str
    rotations: int
    mirrored: bool
    order: int
    matrices: Tensor
    product: Tensor
    inverse: Tensor

    def __init__(self, rotations: int, mirrored: bool) -> None:
        check_positive(rotations=rotations)
        if rotations > _MOST:
            raise ValueError(
                f"a group has at most {_MOST} rotations, all of whose products are in a table, but got {rotations}"
            )
        self.name = ("Z2" if rotations == 1 else f"R{rotations}") + ("M" if mirrored else "")
        self.rotations = rotations
        self.mirrored = mirrored
        self.order = rotations * (2 if mirrored else 1)
        self._entries = [_matrix(rotations, *self._split(g)) for g in range(self.order)]
        self.matrices = torch.tensor(self._entries, dtype=torch.float64)
        self.product = self._products()
        self.inverse = torch.tensor([self._invert(g) for g in range(self.order)])

    def _split(self, element: int) -> tuple[int, int]:
        """The turn r and the mirror flag s of element s·n + r."""
        mirror, turn = divmod(element, self.rotations)
        return turn, mirror

    def _products(self) -> Tensor:
        """R(a) Mˢ · R(b) Mᵗ = R(a + (−1)ˢ b) Mˢ⁺ᵗ, because M R(b) = R(−b) M: [|H|, |H|]."""
        elements = torch.arange(self.order)
        turn, mirror = elements % self.rotations, elements // self.rotations
        turns = (turn[:, None] + (1 - 2 * mirror[:, None]) * turn) % self.rotations
        return (mirror[:, None] ^ mirror) * self.rotations + turns

    def _invert(self, g: int) -> int:
        turn, mirror = self._split(g)
        return g if mirror else -turn % self.rotations

    @cached_property
    def grid_elements(self) -> tuple[int, ...]:
        """Elements that map the pixel grid to itself: quarter turns, mirrors along the grid, their products."""
        return tuple(g for g in range(self.order) if self._steps(g) is not None)

    def _steps(self, element: int) -> GridSteps | None:
        """How an element permutes the pixels, if it does; told by numbers, as a traced graph cannot ask a matrix."""
        if type(self) is not Group:
            return steps_on_grid(self.matrices[element])  # which may be others in a class of somebody's own
        turn, mirror = self._split(element)
        quarter_turns, rest = divmod(4 * turn, self.rotations)
        return None if rest else GridSteps(bool(mirror), quarter_turns)

    @property
    def is_on_grid(self) -> bool:
        """Whether every element maps the pixel grid to itself (Z2, R2, R4 and their mirrored versions)."""
        return len(self.grid_elements) == self.order

    def __getitem__(self, element: int) -> Element:
        return Element(self, self._checked(element))

    def __len__(self) -> int:
        return self.order

    def __iter__(self) -> Iterator[Element]:
        return (Element(self, g) for g in range(self.order))

    def act(self, x: Tensor, element: int | Element) -> Tensor:
        """Left action on images and on features of the group.

            (L_g f)(i) = f(g⁻¹ i),    (L_g f)(i, h) = f(g⁻¹ i, g⁻¹ h)

        Args:
            x: image [B, C, H, W] or feature [B, C, |H|, H, W].
            element: index or element of this group.

        Returns:
            The same shape; H and W change places under odd quarter turns. Exact for `grid_elements`; sampled
            (bilinear, zeros outside) for the others.

        Raises:
            ValueError: `x` is neither an image nor a feature of this group, `element` is not in it, or whole numbers
                would have to be sampled.
        """
        element = self._checked(element)
        is_feature = x.ndim == 5 and x.shape[2] == self.order
        if x.ndim != 4 and not is_feature:
            raise ValueError(
                f"{self.name} acts on images [B, C, H, W] or on features [B, C, {self.order}, H, W] "
                f"(poses on axis 2), but got the shape {list(x.shape)}"
            )
        matrix = self._entries[element] if type(self) is Group else self.matrices[element].tolist()
        moved = move(x, matrix, self._steps(element))
        return moved[:, :, self.product[self.inverse[element]].to(x.device)] if is_feature else moved

    def representation(self, field: Field = "vector") -> Tensor:
        """How elements act on the numbers of a field, ρ(g).

        A field is of one kind, or of several, one after another:

            "scalar"        1 number without a direction, such as a size
            "pseudoscalar"  1 that changes its sign in a mirror, such as a sense of rotation
            "pair"          2 that change places in a mirror, such as what belongs to the left and to the right
            "vector"        2: (x, y), x to the right and y up
            "axis"          2 for a direction θ that is the same after half a turn: (cos 2θ, sin 2θ)
            n               2 for one that is the same after 360°/n: (cos nθ, sin nθ); 1 is "vector", 2 "axis"
            "pair*vector"   4: the vector of the left, the vector of the right; products of other names alike

            ρ(R(a) Mˢ) = R(n · a) diag((−1)ⁿ, −(−1)ⁿ)ˢ    of directions, in turns R and the left–right mirror M

        Args:
            field: a kind, or a sequence of kinds, such as ["scalar", "vector"].

        Returns:
            float64 [|H|, N, N] for N numbers; `matrices` for "vector".

        Raises:
            ValueError: no such kind.
        """
        return representation(self.matrices, field)

    def describe(self, element: int | Element) -> str:
        """An element in words: its mirror and its angle, such as "mirror, then 90°"."""
        turn, mirror = self._split(self._checked(element))
        angle = f"{360 * turn / self.rotations:g}°"
        return f"mirror, then {angle}" if mirror else angle

    def _checked(self, element: int | Element) -> int:
        if isinstance(element, Element):
            if element.group != self:
                raise ValueError(f"expected an element of {self.name}, but got one of {element.group.name}")
            return element.index
        index = operator.index(element)
        if not 0 <= index < self.order:
            raise ValueError(f"{self.name} has the elements 0 to {self.order - 1}, but got {index}")
        return index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return False
        return other is self or (other.name == self.name and torch.equal(other.matrices, self.matrices))

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"group({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """By its name, where that is all there is to it; a class of somebody's own with what it has."""
        from gsa.groups._planar import group

        return (group, (self.name,)) if type(self) is Group else (_empty, (type(self),), self.__dict__)


def _empty(kind: type[Group]) -> Group:
    return kind.__new__(kind)


@dataclass(frozen=True)
class Element:
    """One element of a group: `g @ h` multiplies, `~g` inverts, `int(g)` is its index, as where a tensor is indexed."""

    group: Group
    index: int

    def __matmul__(self, other: Element) -> Element:
        return Element(self.group, int(self.group.product[self.index, self.group._checked(other)]))

    def __invert__(self) -> Element:
        return Element(self.group, int(self.group.inverse[self.index]))

    def __int__(self) -> int:
        return self.index

    __index__ = __int__  # feature[:, :, element] is the feature at a pose

    @property
    def matrix(self) -> Tensor:
        """float64 [2, 2], acting on (x, y)."""
        return self.group.matrices[self.index]

    def __repr__(self) -> str:
        return f"{self.group.name}[{self.index}] ({self.group.describe(self.index)})"


def _matrix(rotations: int, turn: int, mirror: int) -> list[list[float]]:
    """R(2π turn/rotations)·M^mirror in numbers, with whole quarter turns split off so that they stay exact."""
    quarters, rest = divmod(4 * turn, rotations)
    angle = 2 * math.pi * rest / (4 * rotations)
    cosine, sine = math.cos(angle), math.sin(angle)
    for _ in range(quarters):
        cosine, sine = -sine, cosine
    sign = -1.0 if mirror else 1.0
    return [[sign * cosine + 0.0, -sine + 0.0], [sign * sine + 0.0, cosine + 0.0]]  # none is −0
