"""What an output still says of how its input was moved."""

from collections.abc import Callable

import torch
from torch import Tensor

from gsa import groups
from gsa.groups import Group
from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._norm import relative_error

__all__ = ["told_elements"]


def told_elements(
    module: Callable[[Tensor], Tensor], x: Tensor, moved: Tensor, group: Group | str, tolerance: float = 1e-6
) -> list[int]:
    """Elements by which an input may have been moved, as far as an equivariant map's outputs tell.

        {g : ‖Φ(y) − L_g Φ(x)‖ ≤ ε ‖Φ(x)‖},   y = L_k x,   g exact on the grid

    Of a feature it is k alone, where x has no symmetry of its own; an invariant output leaves them all.
    Source: "Group equivariant stand-alone self-attention for vision" (equivariance keeps what invariance loses).

    Args:
        module: Φ, put in eval mode; its outputs are invariant [B, K] or features [B, C, |H|, H, W].
        x, moved: pictures x and y, [B, C, H, W].
        group: whose elements are tried; its name or itself.
        tolerance: ε.
    """
    group = groups.group(group)
    with torch.no_grad(), evaluating(module):
        before, after = module(x.clone()).clone(), module(moved.clone())
    outputs = {g: before if before.ndim == 2 else group.act(before, g) for g in group.grid_elements}
    return [g for g, output in outputs.items() if relative_error(after, output) <= tolerance]
