"""What a sweep says at its end: its jobs, best first, on the screen, in jobs.csv and in jobs.png."""

import csv
import io
import shlex
import statistics
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gsa.files import printable, write_whole
from gsa.report import draw_sweep, read_report
from gsa.runner._cross_validated import Answered, together
from gsa.runner._quoted import override
from gsa.runner._resume import is_of_its_words
from gsa.runner._words import of_a_run, words_of

__all__ = ["sweep_table"]

_MISSING = "–"
_MEASURED = ("val_accuracy", "test_accuracy")
_BALANCED = ("val_balanced_accuracy", "test_balanced_accuracy")  # of jobs whose epochs were chosen by it
_REPEATED = ("seed", "data.split_seed", "data.fold")  # keys whose values are as good as one another


@dataclass(frozen=True)
class _Job:
    folder: Path
    words: tuple[str, ...]  # of the command line, its own among them
    report: dict[str, Any]  # empty, of a job that has not finished

    @property
    def values(self) -> dict[str, str]:
        """Key → value of its words."""
        return {key: value for key, _, value in (word.partition("=") for word in self.words)}

    @property
    def accuracy(self) -> float | None:
        return self.report.get("val_accuracy")


def sweep_table(folder: Path) -> str:
    """The jobs, at least one, whose folders are in that of a sweep: what was varied, parameters, accuracy, folder.

    They are written as jobs.csv as well; of jobs without any result, an earlier one is left as it is. Means follow over
    jobs that differ in their seed, or in how their data are divided, alone. Where jobs have drawn pictures, jobs.png
    shows how they went. Where the test part has not been looked at, the text ends with the command that tests the best
    job.

    Raises:
        OSError: the folder cannot be written.
    """
    jobs = [_read(place) for place in folder.rglob(".hydra/overrides.yaml")]
    judged = _BALANCED if any(job.report.get("chosen_by") == _BALANCED[0] for job in jobs) else _MEASURED
    jobs.sort(key=lambda job: _rank(job, judged[0]))
    shared = set.intersection(*(set(job.words) for job in jobs))
    keys = list(dict.fromkeys(word.partition("=")[0] for job in jobs for word in job.words if word not in shared))
    measured = [name for name in judged if name == judged[0] or any(job.report.get(name) is not None for job in jobs)]
    header = [*keys, "parameters", *measured, "folder"]
    rows = [_row(job, keys, measured) for job in jobs]
    file = folder / "jobs.csv"
    is_news = any(job.report for job in jobs) or not file.exists()
    if is_news:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows])
        write_whole(file, text.getvalue().encode(errors="backslashreplace"))
    where = f"{file} has {'this table' if is_news else 'an earlier table, which is kept'}"
    if is_news and _draw(file.with_suffix(".png"), jobs, keys, judged[0]):
        where += ", jobs.png shows how they went"
    means = _means(jobs, keys, measured)
    earlier = _better_before(folder, jobs[0])
    return "\n".join(["", *_aligned([header, *rows]), where, *_aligned(means), *earlier, *_how_to_go_on(jobs[0])])


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Columns below one another."""
    shown = [[printable(cell) or _MISSING for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in shown]


def _means(jobs: Sequence[_Job], keys: Sequence[str], measured: Sequence[str]) -> list[list[str]]:
    """Mean ± standard deviation over jobs that differ in no other keys than _REPEATED, where some do, best first.

    Of folds as many should be there as they are; jobs whose pictures have changed in between have none.
    """
    others, repeated = [k for k in keys if k not in _REPEATED], [k for k in keys if k in _REPEATED]
    alike: dict[tuple[str, ...], list[_Job]] = {}
    for job in jobs:
        folds = job.values.get("data.fold", "").partition("/")[2]  # 1/5 and 1/2 are not of one division
        alike.setdefault((folds, *(job.values.get(key, "") for key in others)), []).append(job)
    rows: list[tuple[list[str], Answered | None]] = []
    for (folds, *values), all_alike in alike.items():
        found = [job for job in all_alike if job.accuracy is not None]
        if len(found) < 2:
            continue
        of_one = max(int(folds), 1) if folds.isdecimal() else 1  # perhaps for several seeds
        wanted = -(-len(all_alike) // of_one) * of_one
        count = str(len(found)) if len(found) == wanted else f"{len(found)} of {wanted}"
        numbers = [[job.report[name] for job in found if job.report.get(name) is not None] for name in measured]
        means = [_mean(accuracies, len(found)) for accuracies in numbers]
        answered = None
        if len({job.report.get("data", {}).get("files") for job in found}) > 1:
            means = ["of other pictures than one another", *[""] * (len(measured) - 1)]
        elif of_one > 1 and len(found) == wanted:
            with suppress(OSError, ValueError, csv.Error):  # not tested, or damaged
                answered = Answered.of_runs([job.folder for job in found])
        rows.append(([*values, count, *means], answered))
    if not repeated or not rows:
        return []
    mean = len(others) + 1  # of validation; last come those without one
    rows.sort(key=lambda row: (row[0][mean][:1].isdigit(), row[0][mean]), reverse=True)
    header, cells = [*others, f"jobs over {', '.join(repeated)}", *measured], [row for row, _ in rows]
    tested = [answered for _, answered in rows]
    columns = together(tested, balanced=measured[0] == _BALANCED[0])
    return [[*line, *more] for line, more in zip([header, *cells], columns, strict=True)]


def _mean(values: Sequence[float], jobs: int) -> str:
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.4f}{spread}{f' ({len(values)} jobs)' if len(values) < jobs else ''}"


def _read(overrides: Path) -> _Job:
    folder = overrides.parent.parent
    words: tuple[str, ...] = ()
    are_kept, report = False, {}
    with suppress(OSError, ValueError, yaml.YAMLError):  # damaged
        words, are_kept = words_of(folder)
    with suppress(OSError, ValueError):  # not finished, or damaged
        report = read_report(folder) if are_kept or is_of_its_words(folder) else {}
    return _Job(folder, words, report)


def _rank(job: _Job, judged: str) -> tuple[bool, float, int, str]:
    """The best first; without the number that all are judged by, last."""
    name, number = str(job.folder), job.report.get(judged)
    return number is None, -(number or 0), len(name), name


def _row(job: _Job, keys: Sequence[str], measured: Sequence[str]) -> list[str]:
    found = [job.report.get(name) for name in measured]
    accuracies = ["" if value is None else f"{value:.4f}" for value in found]
    return [
        *(job.values.get(key, "") for key in keys),
        str(job.report.get("parameters", "")),
        *accuracies,
        str(job.folder),
    ]


def _draw(file: Path, jobs: Sequence[_Job], keys: Sequence[str], judged: str) -> bool:
    """How those that have drawn pictures went, by what was varied beside the seed; whether there is such a picture."""
    runs: dict[str, list[list[dict[str, float]]]] = {}
    for job in jobs:
        if job.report.get("history") and (job.folder / "learning.png").exists():
            varied = [f"{key.rpartition('.')[2]}={job.values[key]}" for key in keys
                      if key not in _REPEATED and key in job.values]  # fmt: skip
            runs.setdefault(", ".join(varied) or "all jobs", []).append(job.report["history"])
    metric = judged.replace("val_", "val/", 1)
    return sum(map(len, runs.values())) > 1 and draw_sweep(file, runs, metric)


def _better_before(folder: Path, best: _Job) -> list[str]:
    """Of a search that goes on with one that is stored, whose best trial may be in the folder of that."""
    with suppress(OSError, ValueError, KeyError, TypeError, yaml.YAMLError):  # no search, or a damaged file
        of_study = float(yaml.safe_load((folder / "optimization_results.yaml").read_text())["best_value"])
        if best.report and of_study > (best.report.get(best.report.get("chosen_by") or _MEASURED[0]) or 0) + 1e-6:
            return [f"a better trial of this study, {of_study:.4f}, is of an earlier search: jobs.csv of its folder"]
    return []


def _how_to_go_on(job: _Job) -> list[str]:
    """From a search, which tests none and trains each with one seed."""
    best = job.folder / "checkpoints" / "best.ckpt"
    if job.accuracy is None or job.report.get("test_accuracy") is not None or not best.exists():
        return []
    words = of_a_run(job.words)
    others = shlex.join([*(word for word in words if not word.startswith("seed=")), "seed=1,2,3"])
    return [
        f"to train the best with other seeds: python train.py -m {others}",
        f"to test the best: python train.py {shlex.join([*words, 'train=false'])} {override('ckpt_path', best)}",
    ]
