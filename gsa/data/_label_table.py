"""Labels in a table, with a line for every picture."""

import csv
import io
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from gsa.data._class_folders import PART_NAMES
from gsa.data._groups import ALONE, groups_of
from gsa.data._kept import KeptPictures
from gsa.data._picture_files import PictureFiles
from gsa.files import printable
from gsa.files.folders import files_inside, is_called_a_picture

__all__ = ["COLUMNS", "LabelTable", "checked_columns"]

COLUMNS: Mapping[str, str | None] = MappingProxyType({"file": "file", "label": "label", "group": None, "part": None})
_DELIMITERS = ",;\t"
_SHOWN = 5  # names of a message


class _Line(NamedTuple):
    number: int
    file: str  # empty where a class without pictures is named
    label: str
    group: str  # empty of a picture that belongs to no other
    part: str


@dataclass
class LabelTable:
    """Pictures anywhere below a folder, whose labels are in a table of values between commas, semicolons or tabs.

    Its first line has the names of the columns. A file is named by its path below the folder, or by its name alone
    where no other has it; in both its ending may be missing. A line without a file names a class that has no pictures.

    Args:
        path: of the table, in UTF-8.
        root: the folder of the pictures.
        columns: names of those of "file", "label", and if there are such, "group" (where it is empty, the picture
            belongs to no other) and "part" (train, val or test).
        groups: where there is no column of them, as of `ImageFolderDataModule`, of paths below the folder.
    """

    path: Path
    root: Path
    columns: Mapping[str, str | None]
    groups: str | None = None

    @property
    def parts(self) -> list[str]:
        """Names of the parts in their order; "all" where the table has none."""
        found = {line.part for line in self._lines}
        return [part for part in ("train", "val", "test", "all") if part in found]

    @cached_property
    def classes(self) -> list[str]:
        """The labels, in alphabetical order.

        Raises:
            FileNotFoundError: no such table.
            ValueError: a table that cannot be read so; fewer than two labels; parts without train or test.
        """
        found = sorted({line.label for line in self._lines})
        if len(found) < 2:
            raise ValueError(f"{self.path} must have two labels at least in {self.columns['label']}, but has {found}")
        if not {"train", "test"} <= set(self.parts) and self.parts not in (["all"], ["test"]):
            raise ValueError(f"the parts in {self.path} must be train, test and perhaps val, but are {self.parts}")
        return found

    def some(self, count: int) -> list[str]:
        """Paths of so many pictures of every class, of the first part."""
        of_part = [line for line in self._lines if line.part == self.parts[0] and line.file]
        inside = ((self._found[line.file] for line in of_part if line.label == label) for label in self.classes)
        return [path for paths in inside for path in islice(paths, count)]

    def pictures(self, read: KeptPictures, may_lack: bool) -> dict[str, PictureFiles]:
        """By part, the files in the order of their paths; pictures below the folder that are in no line warn.

        Args:
            read: what reads them.
            may_lack: whether there may be classes without pictures.

        Raises:
            ValueError: a file in two lines, or a name of two files; a class without pictures.
        """
        label_of = {name: label for label, name in enumerate(self.classes)}
        in_parts: dict[str, list[tuple[str, int, str]]] = {part: [] for part in self.parts}
        seen: dict[str, int] = {}
        for line in self._lines:
            if not line.file:
                continue
            path = self._found[line.file]
            if (other := seen.setdefault(os.path.realpath(path), line.number)) != line.number:
                raise ValueError(
                    f"every file must be in one line of {self.path}, but {printable(line.file)} is in {other} and "
                    f"{line.number}"
                )
            in_parts[line.part].append((path, label_of[line.label], line.group))
        self._tell_of_others(seen)
        return {part: self._in_order(part, found, read, may_lack) for part, found in in_parts.items()}

    def _in_order(
        self, part: str, found: list[tuple[str, int, str]], read: KeptPictures, may_lack: bool
    ) -> PictureFiles:
        found.sort()
        lacking = [name for label, name in enumerate(self.classes) if label not in {label for _, label, _ in found}]
        if lacking and not (may_lack and found):
            where = "" if part == "all" else f" in {part}"
            raise ValueError(f"every label of {self.path} must have pictures{where}, but {lacking[0]} has none")
        if self.columns["group"] is not None:
            groups = [group or f"{ALONE}{row}" for row, (_, _, group) in enumerate(found)]
        else:
            below = [os.path.relpath(path, self.root) for path, _, _ in found]
            groups = groups_of(below, self.groups or "folder")
        return PictureFiles([(path, label) for path, label, _ in found], groups, read)

    @cached_property
    def _lines(self) -> list[_Line]:
        head, lines = self._read()
        places = {term: head.index(name) for term, name in self.columns.items() if name is not None}
        found = []
        for number, values in lines:
            if len(values) != len(head):
                raise ValueError(
                    f"every line of {self.path} must have {len(head)} values, but line {number} has {len(values)}"
                )
            found.append(self._line(number, **{term: values[place] for term, place in places.items()}))
        return found

    def _line(self, number: int, file: str, label: str, group: str = "", part: str = "all") -> _Line:
        if not label:
            raise ValueError(f"every line of {self.path} must have a label, but line {number} has none")
        if self.columns["part"] is not None and part.lower() not in PART_NAMES:
            raise ValueError(f"parts in {self.path} must be train, val or test, but line {number} has {part!r}")
        return _Line(number, file, label, group, PART_NAMES.get(part.lower(), part))

    def _read(self) -> tuple[list[str], list[tuple[int, list[str]]]]:
        """The names of the columns; number and values of every line that has any."""
        wanted = [name for name in self.columns.values() if name is not None]
        heads: list[list[str]] = []
        try:
            text = self.path.read_bytes().decode("utf-8-sig")
            for delimiter in _DELIMITERS:
                reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
                head = [name.strip() for name in next(reader, [])]
                if set(wanted) <= set(head):
                    lines = ((reader.line_num, [value.strip() for value in values]) for values in reader)
                    return head, [line for line in lines if any(line[1])]
                heads.append(head)
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(
                f"{self.path} must be a table in UTF-8, as spreadsheets save it as 'CSV UTF-8', but is none: {error}"
            ) from error
        head = max(heads, key=len)
        raise ValueError(
            f"the first line of {self.path} must have the columns {', '.join(wanted)}, but has "
            f"{', '.join(map(printable, head)) or 'none'}: data.columns.file and data.columns.label name yours"
        )

    @cached_property
    def _inside(self) -> list[str]:
        """Paths of all pictures below the folder."""
        return [path for path in files_inside(self.root) if is_called_a_picture(path)]

    @cached_property
    def _found(self) -> dict[str, str]:
        """The path of every file in the table; below the folder where there is none."""
        known: dict[str, list[str]] = {}
        for path in self._inside:
            below, name = os.path.relpath(path, self.root), os.path.basename(path)
            for word in {below, name, os.path.splitext(below)[0], os.path.splitext(name)[0]}:
                known.setdefault(word, []).append(path)
        found = {}
        for line in self._lines:
            path = os.path.normpath(os.path.join(self.root, line.file))
            if not os.path.isfile(path) and (paths := known.get(os.path.normpath(line.file))):
                if len(paths) > 1:
                    named = ", ".join(printable(os.path.relpath(path, self.root)) for path in paths[:_SHOWN])
                    raise ValueError(
                        f"line {line.number} of {self.path} must name one file, but {printable(line.file)} is the name "
                        f"of {len(paths)}: {named}"
                    )
                path = paths[0]
            found[line.file] = path
        return found

    def _tell_of_others(self, seen: dict[str, int]) -> None:
        """Warn of pictures below the folder that are in no line."""
        if others := [path for path in self._inside if os.path.realpath(path) not in seen]:
            named = ", ".join(printable(os.path.relpath(path, self.root)) for path in others[:_SHOWN])
            more = ", …" if len(others) > _SHOWN else ""
            warnings.warn(
                f"of the pictures in {self.root}, {len(others)} are not in {self.path} and passed over: {named}{more}",
                stacklevel=2,
            )


def checked_columns(columns: Mapping[str, str | None]) -> dict[str, str | None]:
    """With those that are not named as in `COLUMNS`.

    Raises:
        ValueError: others than these, or no name of file or label.
    """
    found = {**COLUMNS, **columns}
    if set(found) != set(COLUMNS) or None in (found["file"], found["label"]):
        raise ValueError(
            f"columns must name those of file and label, and perhaps of group and part, but got {dict(columns)}"
        )
    return found
