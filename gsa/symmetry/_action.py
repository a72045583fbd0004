"""What moves an input, and what an output has to do then, as its shape says."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from gsa import groups
from gsa.groups import Group
from gsa.symmetry._norm import norm, relative_error

__all__ = ["Action", "GroupAction", "action", "cannot_move", "on_plane"]


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
    def inside(self) -> "Action":
        """What is asked of the layers of a network, where that is another thing than of the whole."""
        return self

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

    Of vectors, in pairs of channels (x, y), the components turn along: (L_g v)(i) = ρ(g) v(g⁻¹ i). The layers between
    may answer either.

    Args:
        group: any group, or its name.
        inputs, outputs: what channels of pictures [B, C, H, W] are, and of outputs [B, K], [B, C, h, w] or
            [B, h, w, C]: "scalars", or "vectors", x to the right and y up.
        fold: of the directions of vectors: 1 of arrows, 2 of axes; see `gsa.groups.Group.representation`.

    Raises:
        ValueError: another kind of channels, a fold that is not positive; inputs of an odd number of channels that
            would have to be vectors.
    """

    def __init__(self, group: Group | str, inputs: str = "scalars", outputs: str = "scalars", fold: int = 1) -> None:
        if not all(end in ("scalars", "vectors") for end in (inputs, outputs)):
            raise ValueError(f"inputs and outputs must be 'scalars' or 'vectors', but got {inputs!r} and {outputs!r}")
        self.group = groups.group(group)
        self.inputs, self.outputs, self.fold = inputs, outputs, fold
        self._representation = self.group.representation(fold)
        self.name = self.group.name
        self.elements = [self.group.describe(g) for g in range(self.group.order)]
        self.exact = self.group.grid_elements

    @property
    def moving(self) -> Sequence[int]:
        return self.exact[1:]  # without the identity

    @property
    def inside(self) -> Action:
        return self if self.inputs == self.outputs == "scalars" else _EitherWay(self)

    def act(self, x: Tensor, element: int) -> Tensor:
        if self.inputs == "vectors" and x.ndim == 4:
            if x.shape[1] % 2:
                raise ValueError(f"vectors are in two channels each, (x, y), but got the shape {list(x.shape)}")
            x = self._turned(x, element)
        return self.group.act(x, element)

    def moved(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        if output.shape[:1] != shape[:1]:  # the batch, which windows are not
            return None
        are_vectors = self.outputs == "vectors" and output.ndim in (2, 4)
        if output.ndim == 2:
            return None if are_vectors and output.shape[1] % 2 else self._turned(output, element, are_vectors)
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
        if are_vectors and maps.shape[1] % 2:
            return None
        return back(self.group.act(self._turned(maps, element, are_vectors), element))

    def error(self, after: Tensor, before: Tensor, element: int, shape: torch.Size, floor: float = 0.0) -> float | None:
        found = super().error(after, before, element, shape, floor)
        if found is None:
            return None
        as_poses = self._of_poses(before, element)  # of sides and numbers that those of maps or tokens have, too
        return found if as_poses is None else min(found, relative_error(after, as_poses, norm(before).clamp_min(floor)))

    def _of_poses(self, output: Tensor, element: int) -> Tensor | None:
        """[B, C, |H|] as a feature without pixels."""
        if output.ndim != 3 or self.group.order == 1 or output.shape[2] != self.group.order:
            return None
        return self.group.act(output[..., None, None], element).flatten(2)

    def _turned(self, vectors: Tensor, element: int, are_vectors: bool = True) -> Tensor:
        """ρ(g) v, of [B, 2K, …]; scalars stay as they are."""
        if not are_vectors:
            return vectors
        turn = self._representation[element].to(vectors)
        return torch.einsum("xy,bky...->bkx...", turn, vectors.unflatten(1, (-1, 2))).flatten(1, 2)


class _EitherWay(Action):
    """Of the layers of a network with vectors at an end: what they return may be scalars as well as vectors.

    A layer that commutes with the group in either sense has not broken the symmetry.
    """

    def __init__(self, whole: GroupAction) -> None:
        self.name, self.elements, self.exact = whole.name, whole.elements, whole.exact
        self._scalars, self._vectors = copy.copy(whole), copy.copy(whole)
        self._scalars.outputs, self._vectors.outputs = "scalars", "vectors"

    def act(self, x: Tensor, element: int) -> Tensor:
        return self._scalars.act(x, element)

    def moved(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        return self._scalars.moved(output, element, shape)

    def error(self, after: Tensor, before: Tensor, element: int, shape: torch.Size, floor: float = 0.0) -> float | None:
        errors = [one.error(after, before, element, shape, floor) for one in (self._scalars, self._vectors)]
        return min((error for error in errors if error is not None), default=None)


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
        f"{name} must return what {symmetry.name} can move: [B, K], an image, a feature, or tokens, or a map [B, H, W] "
        "of the input's sides; but it returns "
        f"{received} for the input {list(x.shape)}"
    )


def on_plane(output: Tensor, shape: torch.Size) -> tuple[Tensor, Callable[[Tensor], Tensor]] | None:
    """An output as maps [B, …, h, w] and the way back from them; None where its shape is no map of the input.

    Args:
        output: maps, [B, h, w, C], [B, H, W] or tokens [B, N, C] with or without one of a class before them.
        shape: of the input, [..., H, W]; channels come last, and tokens are a grid, where h : w = H : W. What can be
            maps [B, C, h, w] of a layer that cuts borders, or takes every so many-th pixel, is such.
    """
    height, width = shape[-2:]
    if output.ndim == 4:
        rows, columns, last = output.shape[1:]
        if rows * width == columns * height and not _is_map((columns, last), (height, width)):
            return output.movedim(-1, 1), lambda maps: maps.movedim(1, -1)
    if output.ndim in (4, 5):  # those of a square are square
        return None if height == width and output.shape[-2] != output.shape[-1] else (output, lambda maps: maps)
    if output.ndim == 3 and output.shape[1:] == shape[-2:]:
        return output[:, None], lambda maps: maps[:, 0]
    if output.ndim == 3:
        for first in (0, 1):  # token of a class
            of_class, tokens = output[:, :first], output[:, first:]
            cells = tokens.shape[1]
            rows = math.isqrt(cells * height // width)
            if rows > 1 and rows * rows * width == cells * height and cells % rows == 0:
                maps = tokens.mT.unflatten(2, (rows, cells // rows))
                return maps, partial(_as_tokens, of_class)
    return None


def _is_map(sides: tuple[int, int], full: tuple[int, int]) -> bool:
    """Whether maps have these sides where k ≥ 0 pixels are cut and every s-th is taken: ⌊(n − k)/s⌋ or ⌈(n − k)/s⌉."""
    if sides[0] * full[1] == sides[1] * full[0]:
        return True
    for stride in range(1, max(full) + 1):
        least = [n - stride * side for n, side in zip(full, sides, strict=True)]  # of k, rounded up
        for first in (least, [k - stride + 1 for k in least]):  # rounded up, rounded down
            if max(*first, 0) <= min(first) + stride - 1:
                return True
    return False


def _as_tokens(of_class: Tensor, maps: Tensor) -> Tensor:
    return torch.cat((of_class, maps.flatten(2).mT), dim=1)
