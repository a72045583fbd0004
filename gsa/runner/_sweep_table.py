"""What a sweep says at its end: its jobs, best first, on the screen and in jobs.csv."""

import csv
import io
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gsa.files import printable, write_whole
from gsa.report import read_report
from gsa.runner._quoted import override
from gsa.runner._resume import is_of_its_words

__all__ = ["sweep_table"]

_MISSING = "–"


@dataclass(frozen=True)
class _Job:
    folder: Path
    words: tuple[str, ...]  # of the command line, its own among them
    report: dict[str, Any]  # empty, of a job that has not finished

    @property
    def accuracy(self) -> float | None:
        return self.report.get("val_accuracy")


def sweep_table(folder: Path) -> str:
    """The jobs, at least one, whose folders are in that of a sweep: what was varied, parameters, accuracy, folder.

    They are written as jobs.csv as well; of jobs without any result, an earlier one is left as it is. Where the test
    part has not been looked at, the text ends with the command that tests the best job.

    Raises:
        OSError: the folder cannot be written.
    """
    jobs = sorted((_read(place) for place in folder.rglob(".hydra/overrides.yaml")), key=_best_first)
    shared = set.intersection(*(set(job.words) for job in jobs))
    keys = list(dict.fromkeys(word.partition("=")[0] for job in jobs for word in job.words if word not in shared))
    header = [*keys, "parameters", "val_accuracy", "folder"]
    rows = [_row(job, keys) for job in jobs]
    file = folder / "jobs.csv"
    is_news = any(job.report for job in jobs) or not file.exists()
    if is_news:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows])
        write_whole(file, text.getvalue().encode(errors="backslashreplace"))
    lines = [header, *([printable(cell) or _MISSING for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    told = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    where = f"{file} has {'this table' if is_news else 'an earlier table, which is kept'}"
    return "\n".join(["", *told, where, *_how_to_test(jobs[0])])


def _read(overrides: Path) -> _Job:
    folder = overrides.parent.parent
    words, report = None, {}
    with suppress(OSError, ValueError, yaml.YAMLError):  # damaged
        words = yaml.safe_load(overrides.read_text(encoding="utf-8"))
    with suppress(OSError, ValueError):  # not finished, or damaged
        report = read_report(folder) if is_of_its_words(folder) else {}
    return _Job(folder, tuple(map(str, words)) if isinstance(words, list) else (), report)


def _best_first(job: _Job) -> tuple[bool, float, int, str]:
    name = str(job.folder)
    return job.accuracy is None, -(job.accuracy or 0), len(name), name


def _row(job: _Job, keys: list[str]) -> list[str]:
    values = {key: value for key, _, value in (word.partition("=") for word in job.words)}
    accuracy = "" if job.accuracy is None else f"{job.accuracy:.4f}"
    return [*(values.get(key, "") for key in keys), str(job.report.get("parameters", "")), accuracy, str(job.folder)]


def _how_to_test(job: _Job) -> list[str]:
    best = job.folder / "checkpoints" / "best.ckpt"
    if job.accuracy is None or job.report.get("test_accuracy") is not None or not best.exists():
        return []
    words = [word for word in job.words if not word.startswith(("search=", "test=", "ckpt_path=", "hydra"))]
    return [f"to test the best: python train.py {shlex.join([*words, 'train=false'])} {override('ckpt_path', best)}"]
