"""Which pictures a run has trained on, and what it said of those of the test."""

from collections.abc import Mapping
from pathlib import Path

from gsa.files import prediction_table, table, write_whole
from gsa.report._subject import Findings, Subject

__all__ = ["write_answers", "write_parts"]


def write_parts(run: Subject, folder: Path) -> None:
    """parts.csv: path, group if any, class and part of every picture that has a file, and of what is left out."""
    parts, classes = run.data.parts, run.data.classes
    found = [(*file, name) for name, part in parts.items() for file in part.files or ()]
    found += [(*file, "left out") for file in run.data.left_out]
    if found:
        known = _known([path for path, _, _ in found], run.data.group_of)
        known |= {"class": [classes[label] for _, label, _ in found], "part": [part for _, _, part in found]}
        write_whole(folder / "parts.csv", table([*known], zip(*known.values(), strict=True)))


def write_answers(run: Subject, findings: Findings, folder: Path) -> None:
    """test.csv: path, or index, and class of every test picture, its likeliest class, every class's probability.

    Pictures that are in groups have a column more.
    """
    files, classes, rows = run.data.parts["test"].files, run.data.classes, findings.rows.tolist()
    known = {"index": rows} if files is None else _known([files[row][0] for row in rows], run.data.group_of)
    known["class"] = [classes[label] for label in findings.labels.tolist()]
    write_whole(folder / "test.csv", prediction_table(known, findings.chances.tolist(), list(classes)))


def _known(paths: list[str], group_of: Mapping[str, str]) -> dict[str, list]:
    """Columns of pictures: their paths, and where there are groups, these, empty of one in none."""
    return {"path": paths} | ({"group": [group_of.get(path, "") for path in paths]} if group_of else {})
