"""Labels in a table, with a line for every picture."""

import os
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gsa.data._kept import KeptPictures
from gsa.data._picture_files import ALONE, PictureFiles
from gsa.data.folder._groups import groups_of
from gsa.data.folder._named_files import NamedFiles
from gsa.data.folder._table_lines import Line, read_lines
from gsa.files import printable

__all__ = ["LabelTable"]

_SHOWN = 5  # names of a message


@dataclass
class LabelTable:
    """Pictures anywhere below a folder, whose labels are in a table of values between commas, semicolons or tabs.

    Its first line has the names of the columns. A file is named as `NamedFiles` finds it. A line without a file names a
    class that has no pictures.

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

    @cached_property
    def parts(self) -> list[str]:
        """Names of the parts in their order; "all" where the table has none."""
        found = {line.part for line in self._lines}
        return [part for part in ("train", "val", "test", "all") if part in found]

    @cached_property
    def classes(self) -> list[str]:
        """The labels, in alphabetical order.

        Raises:
            FileNotFoundError: no such table.
            ValueError: a table that cannot be read so; fewer than two labels; parts without train or test; a line that
                names no file of a label that has others.
        """
        found = sorted({line.label for line in self._lines})
        if len(found) < 2:
            one = ", ".join(map(printable, found)) or "none"
            raise ValueError(
                f"{self.path} must have two labels at least in {self.columns['label']}, but has {one} (a line without "
                "a file names a class that is not tested)"
            )
        if not {"train", "test"} <= set(self.parts) and self.parts not in (["all"], ["test"]):
            raise ValueError(f"the parts in {self.path} must be train, test and perhaps val, but are {self.parts}")
        shown = {line.label for line in self._lines if line.file}
        if nameless := [line for line in self._lines if not line.file and line.label in shown]:
            raise ValueError(f"every line of {self.path} must name a file, but line {nameless[0].number} names none")
        return found

    def some(self, count: int) -> list[str]:
        """Paths of so many pictures of every class, of the first part."""
        taken: Counter[str] = Counter()
        found = []
        for line in self._lines:
            if line.part == self.parts[0] and line.file and taken[line.label] < count:
                taken[line.label] += 1
                found.append(self._path(line))
        return found

    def pictures(self, read: KeptPictures, may_lack: bool) -> dict[str, PictureFiles]:
        """By part, the files in the order of their paths; pictures below the folder that are in no line warn.

        Args:
            read: what reads them.
            may_lack: whether there may be classes without pictures.

        Raises:
            ValueError: no file that is there, one in two lines, or a name of two files; a class without pictures.
        """
        label_of = {name: label for label, name in enumerate(self.classes)}
        in_parts: dict[str, dict[str, Line]] = {part: {} for part in self.parts}
        seen: dict[str, Line] = {}
        for line in self._lines:
            if line.file:
                path = self._path(line)
                if (other := seen.setdefault(os.path.realpath(path), line)) is not line:
                    raise ValueError(
                        f"every file must be in one line of {self.path}, but {printable(line.file)} is in "
                        f"{other.number} and {line.number}"
                    )
                in_parts[line.part][path] = line
        self._refuse_elsewhere(seen)
        self._tell_of_others(seen)
        for part, found in in_parts.items():
            lacking = {*label_of} - {line.label for line in found.values()}
            if lacking and not (may_lack and found):
                where = "" if part == "all" else f" in {part}"
                raise ValueError(
                    f"every label of {self.path} must have pictures{where}, but {printable(min(lacking))} has none"
                )
        return {part: self._in_order(found, label_of, read) for part, found in in_parts.items()}

    def _in_order(self, found: Mapping[str, Line], label_of: Mapping[str, int], read: KeptPictures) -> PictureFiles:
        files = [(path, label_of[found[path].label]) for path in sorted(found, key=self._below)]
        if self.columns["group"] is not None:
            groups = [found[path].group or f"{ALONE}{row}" for row, (path, _) in enumerate(files)]
        else:
            groups = groups_of([self._below(path) for path, _ in files], self.groups or "folder")
        return PictureFiles(files, groups, read)

    def _below(self, path: str) -> str:
        """However a table names it, by its whole path or not."""
        return os.path.relpath(path, self.root)

    @cached_property
    def _lines(self) -> list[Line]:
        return read_lines(self.path, self.columns)

    @cached_property
    def _files(self) -> NamedFiles:
        return NamedFiles(self.root)

    def _path(self, line: Line) -> str:
        try:
            return self._files[line.file]
        except ValueError as error:
            raise ValueError(f"line {line.number} of {self.path} {error}") from None

    def _refuse_elsewhere(self, seen: Mapping[str, Line]) -> None:
        """Paths of another computer, or the wrong folder."""
        if seen and not any(map(os.path.isfile, seen)):
            first = next(iter(seen.values()))
            there = printable(os.path.relpath(self._files.paths[0], self.root)) if self._files.paths else "none"
            raise ValueError(
                f"the files in {self.path} must be below {self.root}, but none is: line {first.number} names "
                f"{printable(first.file)}, and the first picture there is {there}"
            )

    def _tell_of_others(self, seen: Mapping[str, Line]) -> None:
        """Warn of pictures below the folder that are in no line."""
        if others := [path for path in self._files.paths if os.path.realpath(path) not in seen]:
            named = ", ".join(printable(os.path.relpath(path, self.root)) for path in others[:_SHOWN])
            more = ", …" if len(others) > _SHOWN else ""
            warnings.warn(
                f"of the pictures in {self.root}, {len(others)} are not in {self.path} and passed over: {named}{more}",
                stacklevel=2,
            )
