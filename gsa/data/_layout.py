"""Folders of classes, perhaps in folders of parts: where they are, and what is said where they lie otherwise."""

import os
from collections.abc import Sequence
from pathlib import Path

from gsa.data._class_folders import class_names
from gsa.files import printable

__all__ = ["classes_below", "places_of", "refuse_links"]

_PARTS = ("train", "val", "test")
_MEANT = {part: part for part in _PARTS} | {
    "valid": "val",
    "validation": "val",
    "training": "train",
    "testing": "test",
}
_TABLES = (".csv", ".tsv", ".xls", ".xlsx", ".ods")


def places_of(root: Path) -> dict[str, Path]:
    """Part → the folder of its classes; of pictures that nobody has divided, "all" → root."""
    return {part: root / part for part in _PARTS if (root / part).is_dir()} or {"all": root}


def classes_below(root: Path) -> list[str]:
    """Names of the classes, the same in every part.

    Raises:
        FileNotFoundError: no folders, or none of train or of test; test may be alone.
        ValueError: names that parts have elsewhere, parts whose classes differ, or fewer than two classes.
    """
    places = places_of(root)
    if set(places) not in ({"all"}, {"test"}):
        places = {"train": root / "train", "test": root / "test"} | places
    first, *others = places.values()
    classes = _classes(first, root)
    _check_names(root, [] if "all" in places else class_names(root), classes)
    for folder in others:
        if (found := _classes(folder, root)) != classes:
            raise ValueError(f"{folder} should hold the classes of train, {classes}, but holds {found}")
    if len(classes) < 2:
        inside = first / classes[0]
        meant = f": did you mean data.root={inside}?" if len(class_names(inside)) > 1 else _advice(first)
        raise ValueError(f"there must be folders of two classes at least, but {first} has {classes}{meant}")
    return classes


def refuse_links(places: Sequence[str | Path], rule: str) -> None:
    """A file or folder that is a link to another one would put the same pictures into two parts or classes.

    Args:
        places: paths.
        rule: that it breaks, for messages.

    Raises:
        ValueError: naming both.
    """
    found: dict[str, str | Path] = {}
    for place in places:
        if (other := found.setdefault(os.path.realpath(place), place)) != place:
            raise ValueError(f"{rule}, but {place} is {other}: take the link away")


def _classes(folder: Path, root: Path) -> list[str]:
    if not folder.is_dir() or not (names := class_names(folder)):
        raise FileNotFoundError(
            f"pictures are read from {root}/<class>/ or {root}/{{train,test}}/<class>/, but {folder} is not a folder "
            f"of folders{_advice(folder)}"
        )
    return names


def _check_names(root: Path, parts: Sequence[str], classes: Sequence[str]) -> None:
    """Parts under other names would be taken for classes, or passed over."""
    wrong = [name for name in parts if name not in _PARTS] + [name for name in classes if name.lower() in _MEANT]
    if wrong:
        renamed = [f"{name} to {_MEANT[name.lower()]}" for name in wrong if name.lower() in _MEANT]
        advice = f": rename {', '.join(renamed)}" if renamed else ""
        raise ValueError(
            f"{root} must hold a folder for each class, or parts called train, test and perhaps val and nothing "
            f"beside them, but holds {', '.join(wrong)}{advice}"
        )


def _advice(folder: Path) -> str:
    """What to do where labels are in a table, if there is one."""
    tables = [name for name in sorted(os.listdir(folder)) if name.lower().endswith(_TABLES)] if folder.is_dir() else []
    if not tables:
        return ""
    return (
        f"; labels are read from folders only, which docs/pictures.md makes from a table such as {printable(tables[0])}"
    )
