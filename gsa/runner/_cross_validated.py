"""What the tests of all folds say together: of every picture once, and of two networks on the same pictures."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from gsa.report import difference_interval, share_interval

__all__ = ["Answered", "together"]


@dataclass(frozen=True)
class Answered:
    """How often each picture was answered rightly in its tests.

    Args:
        right: path → share of the tests, in 0 … 1.
        groups: path → that of its group, or its own, if it is in none.
        classes: path → its class.
    """

    right: dict[str, float]
    groups: dict[str, str]
    classes: dict[str, str]

    @classmethod
    def of_runs(cls, folders: Sequence[Path]) -> "Answered":
        """By the test.csv of each, which together have every picture equally often.

        Raises:
            OSError: one is not there.
            ValueError, csv.Error: one is damaged, or a picture was tested more often than another.
        """
        tests: dict[str, list[bool]] = {}
        groups: dict[str, str] = {}
        classes: dict[str, str] = {}
        for folder in folders:
            with open(folder / "test.csv", newline="", encoding="utf-8-sig") as file:
                header, *rows = csv.reader(file, strict=True)
            known = header[: header.index("prediction") + 1]  # a class may have any name
            if {"path", "class"} - {*known}:
                raise ValueError(f"{folder / 'test.csv'} must have the columns path and class, but has {known}")
            for row in rows:
                cells = dict(zip(known, row[: len(known)], strict=True))
                tests.setdefault(cells["path"], []).append(cells["class"] == cells["prediction"])
                classes[cells["path"]] = cells["class"]
                groups[cells["path"]] = cells.get("group") or cells["path"]
        if len({len(answers) for answers in tests.values()}) != 1:
            raise ValueError("every picture must be tested equally often")
        return cls({path: sum(answers) / len(answers) for path, answers in tests.items()}, groups, classes)


def together(answered: Sequence[Answered | None], balanced: bool = False) -> list[list[str]]:
    """Columns of a table: what all tests of a row say together, and how far it is ahead of the first row.

    Args:
        answered: of every row; None of one whose folds are not all tested.
        balanced: every class counts alike, in place of every picture.

    Returns:
        The header and the cells of every row; no columns where nothing is known, and no second one of a single row.
    """
    known = [one for one in answered if one is not None]
    if not known:
        return [[] for _ in range(len(answered) + 1)]
    title = f"{'balanced ' if balanced else ''}accuracy over all folds, 95 % interval"
    columns = [[title, *("" if one is None else _share(one, balanced) for one in answered)]]
    if len(known) > 1 and (first := answered[0]) is not None:
        beside = ["" if one is None or one is first else _difference(one, first, balanced) for one in answered]
        columns.append(["against the first", *beside])
    return [list(cells) for cells in zip(*columns, strict=True)]


def _share(one: Answered, balanced: bool) -> str:
    right, classes = list(one.right.values()), list(one.classes.values()) if balanced else None
    low, high = share_interval(right, list(one.groups.values()), classes)
    return f"{_mean(right, classes):.4f} of {len(right)}, {low:.3f} to {high:.3f}"


def _difference(one: Answered, first: Answered, balanced: bool) -> str:
    """Of the same pictures; nothing, if they are others."""
    if one.right.keys() != first.right.keys():
        return ""
    own, others = list(one.right.values()), [first.right[path] for path in one.right]
    classes = list(one.classes.values()) if balanced else None
    low, high = difference_interval(own, others, list(one.groups.values()), classes)
    return f"{_mean(own, classes) - _mean(others, classes):+.4f}, {low:+.3f} to {high:+.3f}"


def _mean(values: Sequence[float], classes: Sequence[str] | None) -> float:
    """Of all; or of the means of the classes."""
    of_class: dict[str, list[float]] = {}
    for value, name in zip(values, classes or [""] * len(values), strict=True):
        of_class.setdefault(name, []).append(value)
    return fmean(map(fmean, of_class.values()))
