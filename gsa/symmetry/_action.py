"""What moves an input, and what an output has to do then, as its shape says."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gsa.symmetry._norm import norm, relative_error

__all__ = ["Action"]


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
        return "[B] or [B, K], an image, a feature, or tokens, or a map [B, H, W] of the input's sides"

    def of_layer(self, layer: nn.Module) -> "Action":
        """What is asked of what a layer of the network returns, where that is another thing than of the whole."""
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
