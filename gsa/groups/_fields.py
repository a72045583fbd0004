"""What the numbers of a field are, and how a group acts on them: those without a direction, directions, pairs."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import torch
from torch import Tensor

from gsa._checks import is_count

__all__ = ["Field", "kinds_of", "representation"]

Field: TypeAlias = str | int | Sequence[str | int]


def kinds_of(field: Field) -> tuple[str | int, ...]:
    """The kinds of a field, one after another: ("scalar",) of "scalar"."""
    given: Any = field  # whatever it is, `representation` refuses it
    return tuple(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else (given,)


def representation(matrices: Tensor, field: Field) -> Tensor:
    """`Group.representation` of a group with these matrices, float64 [|H|, 2, 2]."""
    parts = [_of_one(matrices, kind) for kind in kinds_of(field)]
    if not parts:
        raise _unknown(field)
    return torch.stack([torch.block_diag(*blocks) for blocks in zip(*parts, strict=True)])


def _of_one(matrices: Tensor, field: Any) -> Tensor:
    if is_count(field, least=1):
        return _directions(matrices, int(field))
    names = str(field).split("*")
    if not all(name in _KINDS for name in names):
        raise _unknown(field)
    return reduce(_product, (_KINDS[name](matrices) for name in names))


def _unknown(field: object) -> ValueError:
    return ValueError(
        f"a field is one of {list(_KINDS)}, the fold of directions (1 or more), a product such as 'pair*vector', or a "
        f"sequence of these, such as ['scalar', 'vector'], but got {field!r}"
    )


def _scalar(matrices: Tensor) -> Tensor:
    return matrices.new_ones(len(matrices), 1, 1)


def _pseudoscalar(matrices: Tensor) -> Tensor:
    return torch.linalg.det(matrices).round()[:, None, None]


def _pair(matrices: Tensor) -> Tensor:
    same = torch.eye(2, dtype=matrices.dtype)
    return torch.where(_pseudoscalar(matrices) < 0, same.flip(0), same)


def _directions(matrices: Tensor, fold: int) -> Tensor:
    """ρ(R(a) Mˢ) = R(fold · a) diag((−1)^fold, −(−1)^fold)ˢ, with the left–right mirror M = diag(−1, 1)."""
    mirror = torch.diag(matrices.new_tensor([-1.0, 1.0]))
    mirrored = _pseudoscalar(matrices) < 0
    turns = torch.where(mirrored, matrices @ mirror, matrices)
    powers = torch.linalg.matrix_power(turns, fold)
    return torch.where(mirrored, powers @ (mirror if fold % 2 else -mirror), powers) + 0.0


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Kronecker, element by element."""
    return torch.einsum("gij,gkl->gikjl", a, b).flatten(3, 4).flatten(1, 2)


_KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "scalar": _scalar,
    "pseudoscalar": _pseudoscalar,
    "pair": _pair,
    "vector": lambda matrices: _directions(matrices, 1),
    "axis": lambda matrices: _directions(matrices, 2),
}
