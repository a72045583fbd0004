"""Folders of classes, perhaps in folders of parts: the labels of the pictures in them."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from gsa.data._kept import KeptPictures
from gsa.data._picture_files import PictureFiles
from gsa.data.folder._groups import groups_of
from gsa.files import printable
from gsa.files.folders import ENDINGS, files_inside, is_called_a_picture, is_hidden, passed_over

__all__ = ["PART_NAMES", "ClassFolders", "refuse_links"]

_PARTS = ("train", "val", "test")
PART_NAMES = {part: part for part in _PARTS} | {  # as they are often called → as we call them
    "valid": "val",
    "validation": "val",
    "training": "train",
    "testing": "test",
}
_TABLES = (".csv", ".tsv", ".xlsx", ".xls", ".ods")  # of which the first two are read
_READ = ", ".join(ENDINGS)


@dataclass(frozen=True)
class ClassFolders:
    """Pictures at root/<class>/*, or at root/{train,val,test}/<class>/*.

    Args:
        root: the folder.
        groups: as of `ImageFolderDataModule`.
    """

    root: Path
    groups: str | None = None

    @property
    def parts(self) -> list[str]:
        """Names of the parts; "all" of pictures that nobody has divided."""
        return list(self._places)

    @cached_property
    def classes(self) -> list[str]:
        """Names of the classes, the same in every part.

        Raises:
            FileNotFoundError: no folders, or none of train or of test; test may be alone.
            ValueError: names that parts have elsewhere, parts whose classes differ, or fewer than two classes.
        """
        root, places = self.root, self._places
        if set(places) not in ({"all"}, {"test"}):
            places = {"train": root / "train", "test": root / "test"} | places
        first, *others = places.values()
        classes = _classes(first, root)
        _check_names(root, [] if "all" in places else _folders_in(root), classes)
        for folder in others:
            if (found := _classes(folder, root)) != classes:
                raise ValueError(f"{folder} should hold the classes of train, {classes}, but holds {found}")
        if len(classes) < 2:
            inside = first / classes[0]
            meant = f": did you mean data.root={inside}?" if len(_folders_in(inside)) > 1 else _advice(first)
            raise ValueError(f"there must be folders of two classes at least, but {first} has {classes}{meant}")
        return classes

    def some(self, count: int) -> list[str]:
        """Paths of so many pictures of every class, of the first part."""
        first, *_ = self._places.values()
        inside = (filter(is_called_a_picture, files_inside(first / name)) for name in self.classes)
        return [path for paths in inside for path in islice(paths, count)]

    def pictures(self, read: KeptPictures, may_lack: bool) -> dict[str, PictureFiles]:
        """By part, the files whose names end as pictures' do, in the order of their names; others warn.

        Args:
            read: what reads them.
            may_lack: whether there may be classes without pictures.

        Raises:
            FileNotFoundError: a class without any; of those that may lack them, all.
            ValueError: a folder that is another one, by a link.
        """
        classes, places = self.classes, self._places
        folders = [folder / name for folder in places.values() for name in classes]
        refuse_links(folders, "every class of every part must have a folder of its own")
        return {part: self._in_folder(folder, classes, read, may_lack) for part, folder in places.items()}

    @property
    def _places(self) -> dict[str, Path]:
        """Part → the folder of its classes."""
        return {part: self.root / part for part in _PARTS if (self.root / part).is_dir()} or {"all": self.root}

    def _in_folder(self, folder: Path, classes: Sequence[str], read: KeptPictures, may_lack: bool) -> PictureFiles:
        found: list[tuple[str, int]] = []
        below: list[str] = []
        others: list[str] = []
        for label, name in enumerate(classes):
            inside = files_inside(folder / name)
            pictures = [path for path in inside if is_called_a_picture(path)]
            if not pictures and not (may_lack and (found or label + 1 < len(classes))):
                what = f"of the files in it, {passed_over(inside)}" if inside else f"expected files of {_READ}"
                raise FileNotFoundError(
                    f"there are no pictures in {folder / name}; {what} that are not hidden. A class without any is "
                    "left out by taking its folder away"
                )
            found += [(path, label) for path in pictures]
            below += [os.path.relpath(path, folder / name) for path in pictures]
            others += [path for path in inside if not is_called_a_picture(path)]
        if others:
            warnings.warn(f"of the files in {folder}, {passed_over(others)}", stacklevel=2)
        _tell_of_loose(folder)
        return PictureFiles(found, groups_of(below, self.groups or "folder"), read)


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


def _folders_in(folder: Path) -> list[str]:
    """Names of the folders in a folder, but for hidden ones."""
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def _classes(folder: Path, root: Path) -> list[str]:
    if not folder.is_dir() or not (names := _folders_in(folder)):
        raise FileNotFoundError(
            f"pictures are read from {root}/<class>/ or {root}/{{train,test}}/<class>/, but {folder} is not a folder "
            f"of folders{_advice(folder)}"
        )
    return names


def _check_names(root: Path, parts: Sequence[str], classes: Sequence[str]) -> None:
    """Parts under other names would be taken for classes, or passed over."""
    wrong = [name for name in parts if name not in _PARTS] + [name for name in classes if name.lower() in PART_NAMES]
    if wrong:
        renamed = [f"{name} to {PART_NAMES[name.lower()]}" for name in wrong if name.lower() in PART_NAMES]
        advice = f": rename {', '.join(renamed)}" if renamed else ""
        raise ValueError(
            f"{root} must hold a folder for each class, or parts called train, test and perhaps val and nothing "
            f"beside them, but holds {', '.join(wrong)}{advice}"
        )


def _tell_of_loose(folder: Path) -> None:
    """Warn of pictures that lie beside the folders of the classes."""
    names = [entry.name for entry in os.scandir(folder) if entry.is_file()]
    if loose := [name for name in names if is_called_a_picture(name) and not is_hidden(name)]:
        warnings.warn(
            f"pictures in {folder} itself ({len(loose)}) are of no class and passed over, such as "
            f"{printable(min(loose))}",
            stacklevel=2,
        )


def _advice(folder: Path) -> str:
    """What to do where labels are in a table, if there is one."""
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    tables = [name for ending in _TABLES for name in names if name.lower().endswith(ending)]
    if not tables:
        return ""
    is_text = tables[0].lower().endswith(_TABLES[:2])
    how = f"data.labels={printable(os.fspath(folder / tables[0]))}" if is_text else "save it as CSV, for data.labels"
    return f"; if their labels are in {printable(tables[0])}: {how}"
