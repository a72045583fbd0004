"""What moves an input, and what an output has to do then, as its shape says."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gsa import groups
from gsa.groups import Field, Group, kinds_of
from gsa.symmetry._norm import norm, relative_error, size, zero_beside
from gsa.symmetry._plane import on_plane

__all__ = ["Action", "GroupAction", "action", "cannot_move"]


class Action(ABC):
    """A symmetry, element by element: what it does to inputs, and what it asks of outputs.

    One of your own has the two methods and the three attributes.

    Attributes:
        name: in a word or two.
        elements: each in words; an element is its index here.
        exact: elements that lose nothing, so that an error is the network's own; others sample between pixels.
    """

    name: str
    elements: Sequence[str]
    exact: Sequence[int]

    @property
    def moving(self) -> Sequence[int]:
        """Exact elements but those that do nothing by definition."""
        return self.exact

    @property
    def movable(self) -> str:
        """The outputs of which it says anything, in words."""
        return "[B, K], an image, a feature, or tokens, or a map [B, H, W] of the input's sides"

    @property
    def inside(self) -> "Action":
        """What is asked of the layers of a network, where that is another thing than of the whole."""
        return self

    def of_layer(self, layer: nn.Module) -> "Action | None":
        """What is asked of what a layer returns that says what it is; None of others, of which `inside` is asked."""
        return None

    @abstractmethod
    def act(self, x: Tensor, element: int) -> Tensor:
        """L_g x, of the input of a network."""

    @abstractmethod
    def moved(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        """L_g of an output, whose shape is read beside that of the input; None of one that says nothing."""

    def seen(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        """An output that is moved, with zeros where it is not compared; None where nothing of it is."""
        return output

    def judges(self, output: Tensor, element: int, shape: torch.Size) -> bool:
        """Whether this says anything of an output, whose shape is read beside that of the input."""
        moved = self.moved(output, element, shape)
        return moved is not None and self.seen(moved, element, shape) is not None

    def error(self, after: Tensor, before: Tensor, element: int, shape: torch.Size, floor: float = 0.0) -> float | None:
        """‖F(L_g x) − L_g F(x)‖ / ‖F(x)‖, each over the pixels that are compared; None where there are none.

        Args:
            after, before: F(L_g x) and F(x).
            element: g.
            shape: of x.
            floor: the least that the error is relative to.
        """
        expected = self.moved(before, element, shape)
        if expected is None:
            return None
        compared = [self.seen(output, element, shape) for output in (after, expected, before)]
        if any(output is None for output in compared):
            return None
        found, expected, before = (output for output in compared if output is not None)
        return relative_error(found, expected, norm(before).clamp_min(floor))


class GroupAction(Action):
    """Turns and mirrors: the elements of a group.

        (L_g f)(i) = f(g⁻¹ i),    (L_g f)(i, h) = f(g⁻¹ i, g⁻¹ h)

    Outputs [B, K] have to be invariant; [B, C, h, w] and [B, h, w, C] are images, as are features of one pose,
    [B, C, 1, h, w]; [B, C, |H|, h, w] are features of the group; [B, H, W] are maps of the input's own sides, such as
    labels; other [B, N, C] are tokens on a grid of its proportions, perhaps behind a class token, which stays. Any
    [B, C, |H|] may also be features without pixels: whichever is nearer counts.

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

    @property
    def inside(self) -> Action:
        return self if self.inputs == self.outputs == "scalar" else _OfAnyKind(self)

    def of_layer(self, layer: nn.Module) -> Action | None:
        field: Field | None = getattr(layer, "output_field", None)
        if field is None or getattr(layer, "group", None) != self.group:
            return None
        return GroupAction(self.group, self.inputs, field)

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
        if output.ndim == 2:
            return output
        if output.ndim == 5 and output.shape[2] == self.group.order:
            return self.group.act(output, element)
        if output.ndim == 5 and output.shape[2] == 1:
            return self.group.act(output.squeeze(2), element).unsqueeze(2)
        if output.ndim == 5:
            return None
        found = on_plane(output, shape)
        if found is None:
            return self._of_poses(output, element)
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
        found = super().error(after, before, element, shape, floor)
        if found is None:
            return None
        if self.outputs != "scalar" and len(self._sizes) > 1:
            return self._of_the_worst_kind(after, before, element, shape, floor)
        as_poses = self._of_poses(before, element)  # of sides and numbers that those of maps or tokens have, too
        return found if as_poses is None else min(found, relative_error(after, as_poses, norm(before).clamp_min(floor)))

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

    def _of_the_worst_kind(self, after: Tensor, before: Tensor, element: int, shape: torch.Size, floor: float) -> float:
        """Of what a field is made of, each beside its own size; what is as good as zero, beside that of all."""
        expected = self.moved(before, element, shape)
        assert expected is not None
        count, floor = self._of_outputs.shape[-1], max(floor, zero_beside([before]))
        parts = [self._numbers(output, shape, count) for output in (after, expected, before)]
        kinds = zip(*(part.split(self._sizes, dim=2) for part in parts), strict=True)
        errors = [relative_error(found, moved, norm(own).clamp_min(floor)) for found, moved, own in kinds]
        return max(errors, key=size)

    @staticmethod
    def _numbers(output: Tensor, shape: torch.Size, count: int) -> Tensor:
        """[B, K, N, …]"""
        if output.ndim == 3:
            return output
        found = on_plane(output, shape) if output.ndim == 4 else None
        return (output if found is None else found[0]).unflatten(1, (-1, count))

    def _of_poses(self, output: Tensor, element: int) -> Tensor | None:
        """[B, C, |H|] as a feature without pixels."""
        if output.ndim != 3 or self.group.order == 1 or output.shape[2] != self.group.order:
            return None
        return None if self.outputs != "scalar" else self.group.act(output[..., None, None], element).flatten(2)


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


def cannot_move(symmetry: Action, name: str, received: str, x: Tensor) -> ValueError:
    """What is said of a map that returns, for x, what a symmetry says nothing of."""
    return ValueError(
        f"{name} must return what {symmetry.name} can move: {symmetry.movable}; but it returns {received} for the "
        f"input {list(x.shape)}"
    )
