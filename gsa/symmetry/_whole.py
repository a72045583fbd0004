"""What a map returns as a whole, which may be several tensors, judged."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from gsa.symmetry._action import Action
from gsa.symmetry._norm import size
from gsa.symmetry._silence import refuse_silence

__all__ = ["cannot_move", "errors_of_whole", "largest", "refuse_silent_answers"]


def errors_of_whole(
    name: str, symmetry: Action, after: Sequence[Tensor], before: Sequence[Tensor], element: int, shape: torch.Size
) -> list[float]:
    """The error of each tensor that a map returns.

    Args:
        name: of the map.
        symmetry, element, shape: as of `Action.error`.
        after, before: what it returns for the moved input, and for the input.

    Raises:
        ValueError: another number of tensors after than before.
    """
    if len(after) != len(before):
        raise ValueError(
            f"{name} must return as many tensors for every input, but returned {len(before)}, and {len(after)} for the "
            "moved one"
        )
    errors = []
    for pair in zip(after, before, strict=True):
        error = symmetry.error(*pair, element, shape)
        assert error is not None, f"{name} returns what {symmetry.name} does not judge"
        errors.append(error)
    return errors


def largest(errors: Sequence[float]) -> float:
    """The worst of them; what is no number is worse than any."""
    return max(errors, key=size)


def refuse_silent_answers(
    run: Callable[[Tensor], list[Tensor]],
    x: Tensor,
    answers: Sequence[Tensor],
    errors: Sequence[Sequence[float]],
    name: str,
) -> None:
    """`refuse_silence`, of each of several answers.

    Args:
        run: the map, which returns several.
        x: its input.
        answers: to that.
        errors: of them by element, as far as they were found.
        name: of the map.
    """
    for index, answer in enumerate(answers):
        which = name if len(answers) == 1 else f"{name}, output {index},"
        refuse_silence(partial(_nth, index, run), x, answer, [row[index] for row in errors], which)


def cannot_move(symmetry: Action, name: str, received: str, x: Tensor) -> ValueError:
    """What is said of a map that returns, for x, what a symmetry says nothing of."""
    return ValueError(
        f"{name} must return what {symmetry.name} can move: {symmetry.movable}; but it returns {received} for the "
        f"input {list(x.shape)}"
    )


def _nth(index: int, run: Callable[[Tensor], list[Tensor]], x: Tensor) -> Tensor:
    return run(x)[index]
