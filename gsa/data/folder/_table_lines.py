"""The lines of a table of labels."""

import csv
import io
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from unicodedata import normalize

from gsa.data.folder._class_folders import PART_NAMES
from gsa.files import printable

__all__ = ["COLUMNS", "Line", "checked_columns", "read_lines"]

COLUMNS: Mapping[str, str | None] = MappingProxyType({"file": "file", "label": "label", "group": None, "part": None})
_DELIMITERS = ",;\t"
_NOTHING = ("na", "n/a", "nan", "null", "none")  # as R and pandas write what is missing; "none" may be a class


class Line(NamedTuple):
    """What a line says.

    Attributes:
        number: in the file, from 1 on, of its end.
        file: empty where a class without pictures is named.
        label: the name of the class.
        group: empty of a picture that belongs to no other.
        part: "train", "val" or "test"; "all" where there is no column of them.
    """

    number: int
    file: str
    label: str
    group: str
    part: str


def checked_columns(columns: Mapping[str, str | None]) -> dict[str, str | None]:
    """With those that are not named as in `COLUMNS`; numbers are names, too.

    Raises:
        ValueError: others than these, or no name of file or label.
    """
    found = {term: None if name is None else str(name).strip() for term, name in {**COLUMNS, **columns}.items()}
    if set(found) != set(COLUMNS) or None in (found["file"], found["label"]):
        raise ValueError(
            f"columns must name those of file and label, and perhaps of group and part, but got {dict(columns)}"
        )
    return found


def read_lines(path: Path, columns: Mapping[str, str | None]) -> list[Line]:
    """All but the first one, which has the names of the columns, and empty ones.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: one that is no table with these columns, or has a line without a label or with another part.
    """
    head, lines = _table(path, {term: name for term, name in columns.items() if name is not None})
    places = {term: head.index(name) for term, name in columns.items() if name is not None}
    found = []
    for number, values in lines:
        if len(values) != len(head):
            raise ValueError(f"every line of {path} must have {len(head)} values, but line {number} has {len(values)}")
        said = {term: values[place] for term, place in places.items()}
        if not said["label"]:
            raise ValueError(f"every line of {path} must have a label, but line {number} has none")
        if said.get("group", "").lower() in _NOTHING:
            raise ValueError(
                f"the group of a picture that belongs to no other must be empty, but in line {number} of {path} is "
                f"{said['group']}"
            )
        part = PART_NAMES.get(said["part"].lower()) if "part" in said else "all"
        if part is None:
            wrong = printable(said["part"]) or "nothing"
            raise ValueError(f"parts in {path} must be train, val or test, but line {number} has {wrong}")
        label, group = (normalize("NFC", said.get(term, "")) for term in ("label", "group"))
        found.append(Line(number, said["file"], label, group, part))
    if missing := [line for line in found if line.label.lower() in _NOTHING[:-1]]:
        warnings.warn(
            f"{len(missing)} lines of {path} have the label {missing[0].label}, which is a class now: take them out if "
            "it stands for no label",
            stacklevel=2,
        )
    return found


def _table(path: Path, columns: Mapping[str, str]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names of the columns; number and values of every line that has any."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} must be a table in UTF-8, as spreadsheets save it as 'CSV UTF-8', but is none: {error}"
        ) from error
    heads = []
    for delimiter in _DELIMITERS:
        head: list[str] = []
        with suppress(csv.Error):  # of what is no name
            head = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
        heads.append([name.strip() for name in head])
        if {*columns.values()} <= {*heads[-1]}:
            _refuse_twice(path, heads[-1], columns)
            return heads[-1], _values(path, text, delimiter)
    head = max(heads, key=len)
    missing = [f"{name} (data.columns.{term} names yours)" for term, name in columns.items() if name not in head]
    raise ValueError(f"the first line of {path} must have the column {', '.join(missing)}, but has {_listed(head)}")


def _values(path: Path, text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Number and values of every line but the first that has any."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines, last = [], 0
    try:
        for values in reader:
            lines.append((last := reader.line_num, [value.strip() for value in values]))
    except csv.Error as error:
        raise ValueError(
            f"every value of {path} that begins with a quotation mark must end with one, but one after line {last} "
            f"does not: {error}"
        ) from error
    return [line for line in lines[1:] if any(line[1])]


def _refuse_twice(path: Path, head: Sequence[str], columns: Mapping[str, str]) -> None:
    if twice := [name for name in columns.values() if head.count(name) > 1]:
        raise ValueError(f"the columns of {path} must have different names, but several are called {twice[0]}")


def _listed(head: Sequence[str]) -> str:
    return ", ".join(map(printable, head)) or "none"
