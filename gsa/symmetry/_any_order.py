"""Layers whose maps come in another order than the group's: poses numbered otherwise, or folded into channels."""

import torch
from torch import Tensor, nn

from gsa.symmetry._action import Action
from gsa.symmetry._group_action import GroupAction
from gsa.symmetry._norm import norm

__all__ = ["InAnyOrder"]

_MOST = 4096  # maps
_LEAST = 16  # numbers of a map, in all pictures


class InAnyOrder(Action):
    """What the symmetry of a group asks of a layer that may keep its maps in any order.

    When the picture moves, the maps of a layer are, each moved, those of before, in another order: so are poses in an
    order of somebody's own, clockwise say, and poses among the channels, [B, C · |H|, H, W]. Which order that is, and
    whether it is that of a representation, is not asked. Maps of few numbers, of which any may be near another's, are
    judged as they stand.

    Args:
        whole: the symmetry itself.
        layer: which says perhaps what it returns.
    """

    def __init__(self, whole: GroupAction, layer: nn.Module) -> None:
        self.whole, self._asked = whole, whole.of_layer(layer)
        self.name, self.elements, self.exact = whole.name, whole.elements, whole.exact

    def act(self, x: Tensor, element: int) -> Tensor:
        return self.whole.act(x, element)

    def moved(self, output: Tensor, element: int, shape: torch.Size) -> Tensor | None:
        moved = self._asked.moved(output, element, shape)
        if moved is not None or output.ndim != 5 or output.shape[0] != shape[0]:
            return moved
        maps = self.whole.group.act(output.flatten(1, 2), element)  # of other poses than the group has
        return maps.unflatten(1, output.shape[1:3])

    def error(self, after: Tensor, before: Tensor, element: int, shape: torch.Size, floor: float = 0.0) -> float | None:
        found = self._asked.error(after, before, element, shape, floor)
        if element not in self.exact:
            return found
        of_maps = self._of_maps(after, before, element, floor)
        errors = [error for error in (found, of_maps) if error is not None]
        return min(errors, default=None)

    def _of_maps(self, after: Tensor, before: Tensor, element: int, floor: float) -> float | None:
        """How far the maps are from those that they should be, each beside the nearest one, and the other way round."""
        if before.ndim not in (4, 5) or not before.is_floating_point():
            return None
        maps = before.flatten(1, -3)
        expected = self.whole.group.act(maps, element)
        found = after.flatten(1, -3)
        if found.shape != expected.shape or maps.shape[1] > _MOST:
            return None
        one, other = (each.transpose(0, 1).flatten(1).cpu().double() for each in (found, expected))
        if one.shape[1] < _LEAST:
            return None
        nearest = torch.cdist(one, other)
        off = max(norm(one - other[nearest.argmin(1)]), norm(other - one[nearest.argmin(0)]))
        return (off / norm(maps).clamp_min(max(floor, torch.finfo(torch.float64).tiny))).item()
