"""What a map that breaks a symmetry of scalars or fields would keep, in words."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gsa.groups import Field, kinds_of
from gsa.symmetry._action import Action, GroupAction
from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._measure import equivariance_error

__all__ = ["what_it_keeps"]

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
    with evaluating(module):
        for other in _others(symmetry):
            if _keeps(module, x, other, tolerance):
                takes = "" if other.inputs == symmetry.inputs else f"it takes {other.inputs!r} and "
                returns = f"every channel that it returns is part of a field, {other.outputs!r}"
                return f"but it keeps it if {takes}{returns}: judge it by {_judged_by(other)}"
        if "vector" in (*kinds_of(symmetry.inputs), *kinds_of(symmetry.outputs)):
            for name, (rows, how) in _CONVENTIONS.items():
                if _keeps(partial(_in_ours, module, torch.tensor(rows), symmetry), x, symmetry, tolerance):
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


def _keeps(module: Callable[[Tensor], Any], x: Tensor, symmetry: GroupAction, tolerance: float) -> bool:
    with suppress(ValueError):  # of channels that do not make such fields
        errors = equivariance_error(module, x, symmetry)
        return all(errors[g] <= tolerance for g in symmetry.exact)
    return False


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
