"""Why a map may break a symmetry, in words: it is random, or keeps it of other fields, or by another convention."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from gsa.groups import Field, kinds_of
from gsa.symmetry._action import Action
from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._group_action import GroupAction, with_vectors, worst_field
from gsa.symmetry._listening import answers
from gsa.symmetry._norm import relative_error

__all__ = ["hint"]

_Answers = tuple[Tensor, list[Tensor]]
_FIELDS = ("scalar", "vector", "axis", "pair", "pseudoscalar")
# How vectors are kept elsewhere, what makes (x, y) of them, x to the right and y up, and how that is said.
_CONVENTIONS = {
    "(right, down)": (((1.0, 0.0), (0.0, -1.0)), "(first, −second)"),
    "(down, right)": (((0.0, 1.0), (-1.0, 0.0)), "(second, −first)"),
}


def hint(module: Callable[[Tensor], Any], x: Tensor, symmetry: Action, tolerance: float) -> str:
    """Why a map may break the exact elements of a symmetry, where that can be told.

    Args:
        module: the map.
        x: its input.
        symmetry: what it breaks; of groups, `GroupAction`, other fields and conventions are tried.
        tolerance: of errors.

    Returns:
        The end of a sentence, or nothing.
    """
    with torch.no_grad(), evaluating(module):
        once, again = (answers(module(x.clone())) for _ in range(2))
        if any(relative_error(*pair) > tolerance for pair in zip(once, again, strict=False)):
            return "and has other outputs for the same input: is it random, or in train mode? Call eval()"
        return _what_it_keeps(module, x, symmetry, tolerance) if type(symmetry) is GroupAction else ""


def _what_it_keeps(module: Callable[[Tensor], Any], x: Tensor, symmetry: GroupAction, tolerance: float) -> str:
    known: dict[str, _Answers | None] = {}
    for other in _others(symmetry):
        if str(other.inputs) not in known:
            known[str(other.inputs)] = _answers(module, x, other)
        if _keeps(known[str(other.inputs)], x, other, tolerance):
            takes = "" if other.inputs == symmetry.inputs else f"it takes {other.inputs!r} and "
            returns = f"every channel that it returns is part of a field, {other.outputs!r}"
            return f"but it keeps it if {takes}{returns}: judge it by {_judged_by(other)}"
    if "vector" in (*kinds_of(symmetry.inputs), *kinds_of(symmetry.outputs)):
        for name, (rows, how) in _CONVENTIONS.items():
            other = with_vectors(symmetry, torch.tensor(rows))
            if _keeps(_answers(module, x, other), x, other, tolerance):
                return f"but it keeps it if its vectors are {name}: {how} are (right, up), as they are here"
    return ""


def _others(symmetry: GroupAction) -> Iterator[GroupAction]:
    """Other outputs of the same inputs; scalars as inputs, or what the outputs are; kinds in another order."""
    inputs, outputs = symmetry.inputs, symmetry.outputs
    pairs: list[tuple[Field, Field]] = [(inputs, field) for field in (inputs, *_FIELDS)]
    pairs += [("scalar", outputs), ("scalar", "scalar"), (outputs, outputs)]
    if not isinstance(inputs, str | int):
        pairs.append(([*kinds_of(inputs)][::-1], outputs))
    if not isinstance(outputs, str | int):
        pairs.append((inputs, [*kinds_of(outputs)][::-1]))
    seen: list[tuple[Field, Field]] = [(inputs, outputs)]
    for pair in pairs:
        if pair not in seen:
            seen.append(pair)
            yield GroupAction(symmetry.group, *pair)


def _judged_by(symmetry: GroupAction) -> str:
    """In Python, and on the command line."""
    said = {"inputs": symmetry.inputs, "outputs": symmetry.outputs}
    given = {name: field for name, field in said.items() if field != "scalar"}
    words = [f"--{'takes' if name == 'inputs' else 'returns'} {','.join(map(str, kinds_of(field)))}"
             for name, field in given.items()]  # fmt: skip
    options = "".join(f", {name}={field!r}" for name, field in given.items())
    return f"GroupAction({symmetry.name!r}{options})" + (f", or {' '.join(words)}" if words else "")


def _answers(module: Callable[[Tensor], Any], x: Tensor, symmetry: GroupAction) -> _Answers | None:
    """F(x), and F(L_g x) for the exact elements; None where inputs are no such fields, or answers no tensors."""
    answers: list[Tensor] = []
    try:
        for given in (x, *(symmetry.act(x, g) for g in symmetry.exact)):
            answer = module(given.clone())
            if not isinstance(answer, Tensor):
                return None
            answers.append(answer.clone())
    except ValueError:
        return None
    return answers[0], answers[1:]


def _keeps(answers: _Answers | None, x: Tensor, symmetry: GroupAction, tolerance: float) -> bool:
    """Whether every field keeps it, each beside its own size: a large channel hides no small one."""
    if answers is None:
        return False
    before, moved = answers
    if not all(symmetry.judges(before, g, x.shape) for g in symmetry.exact):
        return False
    for g, after in zip(symmetry.exact, moved, strict=True):
        error = symmetry.error(after, before, g, x.shape)
        if error is None or not error <= tolerance or not worst_field(symmetry, after, before, g, x.shape) <= tolerance:
            return False
    return True
