"""The planar groups by name."""

import re
from functools import cache

import torch

from gsa.groups._group import Group

__all__ = ["group"]

_NAME = re.compile(r"(Z2|R([1-9][0-9]*))(M?)")
# Of Z, Z2 alone is one of ours: elsewhere it has two elements, and Z3 three.
_ELSEWHERE = re.compile(r"(?P<kind>[CDPR]|Z(?=2))_?(?P<rotations>[1-9][0-9]*)(?P<mirrored>M?)", re.IGNORECASE)


def group(name: str | Group) -> Group:
    """Look up a group by its name: `Z2`, `R<n>` with n ≥ 2, and the same with the mirror: suffix `M`.

    Args:
        name: such as "Z2", "R4", "R16", "Z2M", "R4M"; a group is returned as it is.

    Raises:
        ValueError: not such a name.
    """
    if isinstance(name, Group):
        return name
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None or match[2] == "1":
        raise ValueError(
            "a group is named Z2 (translations only) or R<n> with n ≥ 2 rotations (R4, R8, R12, R16, …), "
            f"with a suffix M for the mirror (Z2M, R4M, R8M, …), but got {name!r}{_meant(name)}"
        )
    found = _build(int(match[2] or 1), bool(match[3]))
    if type(found.matrices) is not torch.Tensor:  # made of what a trace has in the place of tensors: not kept
        _build.cache_clear()
    return found


def _meant(name: object) -> str:
    """The name here of what is called C4, D4, p4 or p4m elsewhere, or r4m by mistake."""
    match = _ELSEWHERE.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        return ""
    kind, mirrored = match["kind"].upper(), match["mirrored"].upper()
    rotations = "1" if kind == "Z" else match["rotations"]
    ours = ("Z2" if rotations == "1" else f"R{rotations}") + ("M" if kind == "D" else mirrored)
    return f": here it is {ours!r}" if _NAME.fullmatch(ours) and ours != name else ""


# Checkpoints that hold a group are read without running code: by this name, and by that of earlier versions.
group.__module__ = "gsa.groups"
torch.serialization.add_safe_globals([group, (group, "gsa.groups._planar.group")])


@cache
def _build(rotations: int, mirrored: bool) -> Group:
    with torch.device("cpu"), torch.inference_mode(False):  # whatever it is first asked for by: the group is kept
        return Group(rotations, mirrored)
