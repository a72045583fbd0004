"""Which pictures a run has trained on, and what it said of those of the test."""

from pathlib import Path

from gsa.files import prediction_table, table, write_whole
from gsa.report._subject import Findings, Subject

__all__ = ["write_answers", "write_parts"]


def write_parts(run: Subject, folder: Path) -> None:
    """parts.csv: path, class and part of every picture, where pictures have files, and of those that are left out."""
    parts, classes = run.data.parts, run.data.classes
    rows = [(path, classes[label], name) for name, part in parts.items() for path, label in part.files or ()]
    rows += [(path, classes[label], "left out") for path, label in run.data.left_out]
    if rows:
        write_whole(folder / "parts.csv", table(("path", "class", "part"), rows))


def write_answers(run: Subject, findings: Findings, folder: Path) -> None:
    """test.csv: path, or index, and class of every test picture, its likeliest class, every class's probability."""
    files, classes, rows = run.data.parts["test"].files, run.data.classes, findings.rows.tolist()
    known = {"index": rows} if files is None else {"path": [files[row][0] for row in rows]}
    known["class"] = [classes[label] for label in findings.labels.tolist()]
    write_whole(folder / "test.csv", prediction_table(known, findings.chances.tolist(), list(classes)))
