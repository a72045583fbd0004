"""What a map that breaks a symmetry of scalars or fields would keep, in words."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gsa.groups import Field, kinds_of
from gsa.symmetry._action import Action, GroupAction
from gsa.symmetry._evaluating import evaluating

__all__ = ["what_it_keeps"]

_Answers = tuple[Tensor, list[Tensor]]
_FIELDS = ("scalar", "vector", "axis", "pair", "pseudoscalar")
# How vectors are kept elsewhere, what makes (x, y) of them, x to the right and y up, and how that is said.
_CONVENTIONS = {
    "(right, down)": (((1.0, 0.0), (0.0, -1.0)), "(first, −second)"),
    "(down, right)": (((0.0, 1.0), (-1.0, 0.0)), "(second, −first)"),
}


def what_it_keeps(module: Callable[[Tensor], Any], x: Tensor, symmetry: Action, tolerance: float) -> str:
    """Other fields that move along where a map breaks the exact elements of a group, or another convention.

    Args:
        module: the map.
        x: its input.
        symmetry: what it breaks; of others than `GroupAction` nothing is said.
        tolerance: of errors.

    Returns:
        The end of a sentence, or nothing.
    """
    if type(symmetry) is not GroupAction:
        return ""
    known: dict[str, _Answers | None] = {}
    with torch.no_grad(), evaluating(module):
        for other in _others(symmetry):
            if str(other.inputs) not in known:
                known[str(other.inputs)] = _answers(module, x, other)
            if _keeps(known[str(other.inputs)], x, other, tolerance):
                takes = "" if other.inputs == symmetry.inputs else f"it takes {other.inputs!r} and "
                returns = f"every channel that it returns is part of a field, {other.outputs!r}"
                return f"but it keeps it if {takes}{returns}: judge it by {_judged_by(other)}"
        if "vector" in (*kinds_of(symmetry.inputs), *kinds_of(symmetry.outputs)):
            for name, (rows, how) in _CONVENTIONS.items():
                ours = partial(_in_ours, module, torch.tensor(rows), symmetry)
                if _keeps(_answers(ours, x, symmetry), x, symmetry, tolerance):
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
    if answers is None:
        return False
    before, after = answers
    if not all(symmetry.judges(before, g, x.shape) for g in symmetry.exact):
        return False
    errors = [symmetry.error(of_g, before, g, x.shape) for g, of_g in zip(symmetry.exact, after, strict=True)]
    return all(error is not None and error <= tolerance for error in errors)


def _in_ours(module: Callable[[Tensor], Any], matrix: Tensor, symmetry: GroupAction, x: Tensor) -> Any:
    """What a map of other vectors makes of vectors (x, y)."""
    output = module(_with_vectors(x, matrix.T, symmetry, symmetry.inputs))
    return _with_vectors(output, matrix, symmetry, symmetry.outputs) if isinstance(output, Tensor) else output


def _with_vectors(x: Tensor, matrix: Tensor, symmetry: GroupAction, field: Field) -> Tensor:
    """Those of a field, [B, K·N, …] or rows [B, K, N], multiplied by a matrix."""
    sizes = {kind: symmetry.group.representation(kind).shape[-1] for kind in kinds_of(field)}
    blocks = [matrix if kind in ("vector", 1) else torch.eye(sizes[kind]) for kind in kinds_of(field)]
    whole = torch.block_diag(*blocks).to(x)
    if x.ndim == 3:
        return x @ whole.T
    return torch.einsum("xy,bky...->bkx...", whole, x.unflatten(1, (-1, len(whole)))).flatten(1, 2)
