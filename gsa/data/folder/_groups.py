"""Pictures that belong together, such as those of one patient, and come into one part."""

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from unicodedata import normalize

from gsa.data._picture_files import ALONE, is_alone
from gsa.files import printable

__all__ = ["groups_of", "refuse_groups_in_two_parts", "warn_of_folders"]

_SHOWN = 5  # names of a message
_PARTS = 3  # fewer folders could not be kept together


def groups_of(below: Sequence[str], groups: str) -> list[str]:
    """The group of each picture, whatever its class.

    Args:
        below: paths below the folders of their classes; accents may be one sign or two, as on macOS.
        groups: "folder", where a picture in none is a group of its own, or an expression that is looked for.

    Raises:
        ValueError: a path in which the expression is not found.
    """
    below = [normalize("NFC", path) for path in below]
    if groups == "folder":
        return [path.partition(os.sep)[0] if os.sep in path else f"{ALONE}{row}" for row, path in enumerate(below)]
    found = [re.search(groups, path) for path in below]
    missing = [path for path, match in zip(below, found, strict=True) if match is None or match[1] is None]
    if missing:
        raise ValueError(
            f"groups must be found in the path of every picture, but {groups!r} is not in {len(missing)} "
            f"of {len(below)}, such as {printable(missing[0])}"
        )
    return [match[1] for match in found if match is not None]


def refuse_groups_in_two_parts(groups: Mapping[str, Sequence[str]]) -> None:
    """Parts that somebody has made share no group.

    Args:
        groups: part → those of its pictures.

    Raises:
        ValueError: naming one that is in two.
    """
    first: dict[str, str] = {}
    for part, found in groups.items():
        for group in found:
            if (other := first.setdefault(group, part)) != part:
                raise ValueError(
                    f"a group must be in one part only, but {printable(group)} is in {other} and in {part}: move its "
                    "pictures into one, or ask for no groups"
                )


def warn_of_folders(classes: Sequence[str], labels: Sequence[int], groups: Sequence[str], are_folders: bool) -> None:
    """Ask what folders within classes mean, where there are any.

    Args:
        classes: their names.
        labels, groups: of every picture, these by "folder".
        are_folders: whether the classes are, which may be the wrong ones.
    """
    folders: list[set[str]] = [set() for _ in classes]
    for label, group in zip(labels, groups, strict=True):
        folders[label].add("" if is_alone(group) else group)
    inside = sorted(set().union(*folders) - {""})
    apart = "pictures of one folder come into several parts; data.groups=folder keeps them together"
    if are_folders and len(inside) > 1 and all(found == set(inside) for found in folders):
        warnings.warn(
            f"the folders {_listed(classes)} are taken as classes, though each holds the folders {_listed(inside)}: "
            f"are these the classes? If so, they must be above the others; if not, {apart}",
            stacklevel=2,
        )
    elif not are_folders and all(len(found) == 1 for found in folders):
        return  # they are the classes
    elif len(inside) >= (1 if are_folders else _PARTS):
        held = "the classes hold folders" if are_folders else "the pictures are in folders"
        warnings.warn(f"{held} ({_listed(inside)}): {apart}", stacklevel=2)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(printable, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
