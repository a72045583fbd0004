"""Measure how far a map is from commuting with a symmetry."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gsa import groups
from gsa.groups import Group
from gsa.symmetry._action import Action
from gsa.symmetry._evaluating import evaluating, name_of, refuse_no_tensor, saying_dtype
from gsa.symmetry._group_action import action
from gsa.symmetry._listening import answers
from gsa.symmetry._norm import norm, relative_error
from gsa.symmetry._orders import check_order
from gsa.symmetry._shifts import check_shift, whole_shift
from gsa.symmetry._silence import refuse_silence, refuse_stillness
from gsa.symmetry._whole import cannot_move, errors_of_whole, largest, refuse_silent_answers

__all__ = ["equivariance_error", "measured_group", "permutation_error", "translation_error"]


def measured_group(own: Group | None) -> Group:
    """The group under which a network is measured if none is named: its own; R4 for one without poses.

    Args:
        own: the network's group, if it has one.
    """
    return own if own is not None and own.order > 1 else groups.group("R4")


def equivariance_error(
    module: Callable[[Tensor], Any], x: Tensor, group: Action | Group | str, refuse_silent: bool = True
) -> dict[int, float]:
    """How far Φ is from commuting with each element of a group, or of another symmetry.

        error(g) = ‖Φ(L_g x) − L_g Φ(x)‖ / ‖Φ(x)‖

    A module is put in eval mode while it is measured, but not one that a function calls; no gradients are taken.

    Args:
        module: Φ, a module or any function of one tensor. Of what returns a list or a dictionary of tensors, such as
            the features of a backbone, each is judged, and the largest error counts.
        x: what is moved: pictures [B, C, H, W], features [B, C, |H|, H, W]; of permutations, tokens [B, N, C].
        group: any group, or its name; it need not be the module's own, unless features with poses come out. Or another
            `Action`: `Shifts`, `TokenPermutations`, `FeaturePermutations`.
        refuse_silent: whether to refuse a Φ that hardly depends on its input, and an input that is not moved; if they
            are not refused, their errors are small.

    Returns:
        {element index: relative error}. The output decides what L_g means, as the `Action` says: of groups, 2-D outputs
        must be invariant, 4-D ones are images, 5-D ones with axis 2 = |H| features. For exact elements
        (`group.grid_elements`) the error is that of the module alone; for the others it includes what sampling the
        picture loses.

    Raises:
        ValueError: an output of another shape, one that hardly depends on the input, or no tensor; an input that no
            exact element moves, but for a group of which only the identity is exact; one of another dtype.
    """
    symmetry = action(group)
    with torch.no_grad(), evaluating(module):
        run, name = _runner(module), name_of(module)
        before, errors = run(x), list[list[float]]()
        for element in range(len(symmetry.elements)):
            moved = symmetry.act(x, element)  # which refuses what cannot be moved, before the output is judged
            for output in before:
                if not symmetry.judges(output, element, x.shape):
                    raise cannot_move(symmetry, name, f"the shape {list(output.shape)}", x)
            errors.append(errors_of_whole(name, symmetry, run(moved), before, element, x.shape))
        if refuse_silent:
            refuse_stillness(x, (symmetry.act(x, g) for g in symmetry.moving), symmetry.name)
            refuse_silent_answers(run, x, before, errors, name)
        return dict(enumerate(map(largest, errors)))


def translation_error(
    module: Callable[[Tensor], Tensor], x: Tensor, shift: int | tuple[int, int], margin: int
) -> float:
    """How far Φ is from commuting with a translation, away from the border.

        ‖Φ(T x) − T Φ(x)‖ / ‖Φ(x)‖ over the pixels at least `margin` from the border

    Args:
        module: Φ; its output keeps H and W, or is 2-D (then it must be invariant, which only a picture with an empty
            border can show).
        x: image or feature, [..., H, W].
        shift: pixels (down, right), or one number for both; what leaves on one side comes in on the other.
        margin: at least the sum of the shift and the reach of Φ, or the border is seen.

    Raises:
        ValueError: the margin leaves nothing, the shift moves nothing of the picture, the output is no tensor, has
            another size, or does not depend on the input.
    """
    shift = whole_shift(shift)
    height, width = x.shape[-2:]
    if 2 * margin >= min(height, width) or margin < 0:
        raise ValueError(f"a margin of {margin} leaves nothing of a {height}×{width} map")
    check_shift(shift, x)

    def shifted(t: Tensor) -> Tensor:
        return torch.roll(t, shift, (-2, -1))

    before, after = _before_and_after(module, x, shifted, f"a shift by {shift}")
    if before.ndim == 2:
        return relative_error(after, before)
    inside = (..., slice(margin, height - margin), slice(margin, width - margin))
    return relative_error(after[inside], shifted(before)[inside], norm(before[inside]))


def permutation_error(module: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> float:
    """How far Φ is from commuting with a permutation σ of the pixels: ‖Φ(xσ) − Φ(x)σ‖ / ‖Φ(x)‖.

    Args:
        module: Φ; its output keeps H and W, or is 2-D (then it must be invariant).
        x: [..., H, W].
        permutation: int64 [H·W].

    Raises:
        ValueError: no permutation of the pixels, or one that moves nothing of the picture; an output that is no tensor,
            has other pixels, or does not depend on the input.
    """
    check_order(permutation, x.shape[-2] * x.shape[-1])

    def permuted(t: Tensor) -> Tensor:
        return t.flatten(-2)[..., permutation].view_as(t)

    before, after = _before_and_after(module, x, permuted, "the permutation")
    return relative_error(after, before if before.ndim == 2 else permuted(before))


def _before_and_after(
    module: Callable[[Tensor], Tensor], x: Tensor, move: Callable[[Tensor], Tensor], name: str
) -> tuple[Tensor, Tensor]:
    """Φ(x) and Φ of x moved: [B, K], or maps of the pixels of x; refused where they say nothing."""
    refuse_stillness(x, [move(x)], name)
    with torch.no_grad(), evaluating(module):
        run = _of_one(module)
        before, after = run(x), run(move(x))
        refuse_silence(run, x, before, [relative_error(after, before)], name_of(module))
    if before.ndim != 2 and before.shape[-2:] != x.shape[-2:]:
        height, width = x.shape[-2:]
        raise ValueError(f"the output must keep the {height}×{width} pixels of the input, but is {list(before.shape)}")
    return before, after


def _runner(module: Callable[[Tensor], Any]) -> Callable[[Tensor], list[Tensor]]:
    """The module for inputs that it may change and outputs that it may use again: the tensors that it returns."""

    def run(x: Tensor) -> list[Tensor]:
        refuse_no_tensor(x)
        with saying_dtype(module, x):
            output = module(x.clone())
        found = [] if isinstance(output, tuple) else answers(output)
        if not found:
            raise _another_output(module, "a tensor, or a list or dictionary of such", type(output).__name__)
        return found

    return run


def _of_one(module: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The same, of a module that returns one."""
    run = _runner(module)

    def run_one(x: Tensor) -> Tensor:
        found = run(x)
        if len(found) != 1:
            raise _another_output(module, "one tensor", f"{len(found)} of them")
        return found[0]

    return run_one


def _another_output(module: Callable, expected: str, received: str) -> ValueError:
    return ValueError(
        f"{name_of(module)} must return {expected}, but returns {received}: wrap it in a function that "
        "returns what is to be judged, such as lambda x: network(x)['out'], and call network.eval() before"
    )
