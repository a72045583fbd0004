"""Turns and mirrors of pictures, and of what is made of them."""

import copy
from collections.abc import Iterator, Sequence
from functools import cached_property

import torch
from torch import Tensor, nn

from gsa import groups
from gsa.groups import Field, Group, kinds_of
from gsa.symmetry._action import Action
from gsa.symmetry._norm import norm, relative_error, size, zero_beside
from gsa.symmetry._plane import on_plane

__all__ = ["GroupAction", "action", "with_vectors", "worst_field"]


class GroupAction(Action):
    """Turns and mirrors: the elements of a group.

        (L_g f)(i) = f(g⁻¹ i),    (L_g f)(i, h) = f(g⁻¹ i, g⁻¹ h)

    Outputs [B] and [B, K] have to be invariant; [B, C, h, w] and [B, h, w, C] are images, as are features of one pose,
    [B, C, 1, h, w]; [B, C, |H|, h, w] are features of the group; [B, H, W] are maps of the input's own sides, such as
    labels; other [B, N, C] are tokens on a grid of its proportions, perhaps behind a class token, which stays. Any
    [B, C, |H|] may also be features without pixels, and of [B, n, n, n] the channels may come first or last: whichever
    is nearer counts.

    Of vectors and other fields, the numbers turn along: (L_g v)(i) = ρ(g) v(g⁻¹ i). N channels make one; they come as
    [B, K·N], rows [B, K, N], or maps [B, K·N, h, w] or [B, h, w, K·N]. The layers between may answer any of the kinds,
    but for one that has the group and says its `output_field`, as `gsa.nn.PosesToFields` does. Of several kinds, each
    error is relative to the kind's own numbers, which may be of other units, and the largest counts.

    Args:
        group: any group, or its name.
        inputs, outputs: what the channels of pictures [B, C, H, W] are, and of outputs, as in
            `gsa.groups.Group.representation`: "scalar"; "vector", (x, y) with x to the right and y up; "axis"; or
            several, such as ["scalar", "vector"].

    Raises:
        ValueError: a field of no such kind; inputs of no multiple of N channels.
    """

    def __init__(self, group: Group | str, inputs: Field = "scalar", outputs: Field = "scalar") -> None:
        self.group = groups.group(group)
        self.inputs, self.outputs = (
            kinds[0] if len(kinds := kinds_of(field)) == 1 else field for field in (inputs, outputs)
        )
        self._of_inputs, self._of_outputs = map(self.group.representation, (inputs, outputs))
        self._sizes = [self.group.representation(kind).shape[-1] for kind in kinds_of(outputs)]
        self.name = self.group.name
        self.elements = [self.group.describe(g) for g in range(self.group.order)]
        self.exact = self.group.grid_elements

    @property
    def moving(self) -> Sequence[int]:
        return self.exact[1:]  # without the identity

    def of_layer(self, layer: nn.Module) -> Action:
        field: Field | None = getattr(layer, "output_field", None)
        if field is not None and getattr(layer, "group", None) == self.group:
            return GroupAction(self.group, self.inputs, field)
        return self if self.inputs == self.outputs == "scalar" else self._of_any_kind

    @cached_property
    def _of_any_kind(self) -> Action:
        return _OfAnyKind(self)

    def act(self, x: Tensor, element: int) -> Tensor:
        if self.inputs != "scalar" and x.ndim == 4:
            if x.shape[1] % self._of_inputs.shape[-1]:
                raise ValueError(
                    f"inputs are fields, {self.inputs!r}, of {self._of_inputs.shape[-1]} channels each, but got the "
                    f"shape {list(x.shape)}"
                )
            x = _turned(self._of_inputs[element], x)
        return self.group.act(x, element)

    def moved(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        if output.shape[:1] != shape[:1]:  # the batch, which windows are not
            return None
        if self.outputs != "scalar":
            return self._moved_field(output, element, shape)
        if output.ndim in (1, 2):
            return output
        if output.ndim == 5 and output.shape[2] == self.group.order:
            return self.group.act(output, element)
        if output.ndim == 5 and output.shape[2] == 1:
            return self.group.act(output.squeeze(2), element).unsqueeze(2)
        if output.ndim == 5:
            return None
        found = on_plane(output, shape)
        if found is None:
            return next(self._otherwise(output, element), None)
        maps, back = found
        return back(self.group.act(maps, element))

    @property
    def movable(self) -> str:
        if self.outputs == "scalar":
            return super().movable
        n = self._of_outputs.shape[-1]
        return (
            f"fields, {self.outputs!r}: [B, {n}·K], [B, K, {n}] or maps [B, {n}·K, h, w] (of features with poses, "
            "gsa.nn.PosesToFields makes them)"
        )

    def error(self, after: Tensor, before: Tensor, element: int, shape: torch.Size, floor: float = 0.0) -> float | None:
        expected = self.moved(before, element, shape)
        if expected is None:
            return None
        if self.outputs != "scalar" and len(self._sizes) > 1:
            return self._of_the_worst_kind(after, expected, before, shape, floor)
        others = [other for other in self._otherwise(before, element) if other.shape == after.shape]
        scale = norm(before).clamp_min(floor)
        return min((relative_error(after, moved, scale) for moved in (expected, *others)), key=size)

    def _otherwise(self, output: Tensor, element: int) -> Iterator[Tensor]:
        """L_g of an output whose shape can be read in another way than that of a picture, or of tokens."""
        if self.outputs != "scalar":
            return
        if output.ndim == 4 and len({*output.shape[1:]}) == 1:  # channels may come last as well
            yield self.group.act(output.movedim(-1, 1), element).movedim(1, -1)
        if output.ndim == 3 and output.shape[2] == self.group.order > 1:  # poses without pixels
            yield self.group.act(output[..., None, None], element).flatten(2)

    def _moved_field(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        """ρ(g) v, moved where it has pixels; None of what is no field."""
        turn = self._of_outputs[element]
        if output.ndim == 3 and output.shape[2] == len(turn):
            return _turned(turn, output.flatten(1)).view_as(output)
        if output.ndim == 2:
            return None if output.shape[1] % len(turn) else _turned(turn, output)
        found = on_plane(output, shape) if output.ndim == 4 else None
        if found is None or found[0].shape[1] % len(turn):
            return None
        maps, back = found
        return back(self.group.act(_turned(turn, maps), element))

    def _of_the_worst_kind(
        self, after: Tensor, expected: Tensor, before: Tensor, shape: torch.Size, floor: float
    ) -> float:
        """Of what a field is made of, each beside its own size; what is as good as zero, beside that of all."""
        floor = max(floor, zero_beside([before]))
        parts = [self._numbers(output, shape) for output in (after, expected, before)]
        kinds = zip(*(part.split(self._sizes, dim=2) for part in parts), strict=True)
        return max((relative_error(found, moved, norm(own).clamp_min(floor)) for found, moved, own in kinds), key=size)

    def _numbers(self, output: Tensor, shape: torch.Size) -> Tensor:
        """Those of a field beside one another, [B, K, N, …]; tokens and maps [B, H, W] as they are."""
        if output.ndim == 3:
            return output
        found = on_plane(output, shape) if output.ndim == 4 else None
        maps = output if found is None else found[0]
        return maps.unflatten(1, (-1, self._of_outputs.shape[-1])) if output.ndim in (2, 4) else maps


def with_vectors(symmetry: GroupAction, matrix: Tensor) -> GroupAction:
    """The same, where an orthogonal matrix makes vectors (x, y) of those that a map takes and returns: M⁻¹ ρ(g) M."""
    other = copy.copy(symmetry)
    other._of_inputs, other._of_outputs = (
        _conjugated(turns, symmetry.group, field, matrix)
        for turns, field in ((symmetry._of_inputs, symmetry.inputs), (symmetry._of_outputs, symmetry.outputs))
    )
    return other


def worst_field(symmetry: GroupAction, after: Tensor, before: Tensor, element: int, shape: torch.Size) -> float:
    """The largest error of the fields of an output, each beside its own size; outputs as they have passed `error`."""
    expected = symmetry.moved(before, element, shape)
    assert expected is not None
    parts = (symmetry._numbers(output, shape).unbind(1) for output in (after, expected, before))
    return max((relative_error(found, moved, norm(own)) for found, moved, own in zip(*parts, strict=True)), key=size)


class _OfAnyKind(Action):
    """Of the layers of a network with fields at an end: what they return may be scalars, directions, or such fields.

    A layer that commutes with the group in any of these senses has not broken the symmetry.
    """

    def __init__(self, whole: GroupAction) -> None:
        self.name, self.elements, self.exact = whole.name, whole.elements, whole.exact
        self._scalars = copy.copy(whole)  # which may be of a class of one's own
        self._scalars.outputs = "scalar"
        fields = [whole.inputs, *kinds_of(whole.inputs), *kinds_of(whole.outputs), "vector", "axis"]
        others = [field for place, field in enumerate(fields) if field != "scalar" and field not in fields[:place]]
        self._others = [whole, *(GroupAction(whole.group, outputs=field) for field in others)]

    def act(self, x: Tensor, element: int) -> Tensor:
        return self._scalars.act(x, element)

    def moved(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        return self._scalars.moved(output, element, shape)

    def error(self, after: Tensor, before: Tensor, element: int, shape: torch.Size, floor: float = 0.0) -> float | None:
        errors = [one.error(after, before, element, shape, floor) for one in (self._scalars, *self._others)]
        return min((error for error in errors if error is not None), default=None)


def _turned(turn: Tensor, fields: Tensor) -> Tensor:
    """ρ v, of [B, K·N, …]."""
    return torch.einsum("xy,bky...->bkx...", turn.to(fields), fields.unflatten(1, (-1, len(turn)))).flatten(1, 2)


def _conjugated(turns: Tensor, group: Group, field: Field, matrix: Tensor) -> Tensor:
    blocks = [
        matrix if kind in ("vector", 1) else torch.eye(group.representation(kind).shape[-1]) for kind in kinds_of(field)
    ]
    whole = torch.block_diag(*blocks).to(turns)
    return whole.mT @ turns @ whole


def action(symmetry: Action | Group | str) -> Action:
    """A symmetry itself, or that of a group or of a group's name.

    Raises:
        ValueError: a symmetry of one's own that lacks an attribute.
    """
    if not isinstance(symmetry, Action):
        return GroupAction(symmetry)
    if missing := [name for name in ("name", "elements", "exact") if not hasattr(symmetry, name)]:
        raise ValueError(
            f"an Action has a name, elements and exact ones, but {type(symmetry).__name__} lacks {missing}"
        )
    return symmetry
