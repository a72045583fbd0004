"""A table of the papers: every row trained, selected on validation, tested once; our figures beside the published.

    python benchmarks/accuracy.py --table rotmnist                              # the papers' recipes: GPU days
    python benchmarks/accuracy.py --table rotmnist --rows r4_sa r4_cnn --seeds 3 -- recipe=fast trainer=gpu
    python benchmarks/accuracy.py --table rotmnist --quick -- data.source=mnist data.root=path/to/folder/with/MNIST

What follows -- are overrides of train.py for every row. Every row and seed is a run of train.py in a folder of its own
below multirun/accuracy_<table>; called again, finished runs are kept and unfinished ones go on. Results hold the rows
of earlier calls in the same --folder too, if they saw the same data and all their seeds have finished. With --budget,
no run begins after so many minutes, and those at work are stopped and saved, as they are by Ctrl-C and SIGTERM.

--quick is the shortened table: few rows, the fast recipe, few epochs of few pictures and 5 000 of the test pictures,
the same for all. Each row gets the same search: every rate of --rates for half the epochs (rounded down), with a seed
of its own and without the test set; the best on validation is then trained with all seeds. A single rate is taken as
it is.
"""

import argparse
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from _curves import draw, epochs_to
from _machine import add_record, describe, results, save
from published import AS_PUBLISHED, LONG, PUBLISHED, QUICK
from table import data_of, spread

ROOT = Path(__file__).parent.parent
SEARCH_SEED = 1000
REFUSED = 2  # exit code of a configuration that cannot be run
QUICK_OVERRIDES = (
    "recipe=fast",
    "trainer.limit_train_batches=125",
    "trainer.limit_test_batches=50",
    "report=false",
    "callbacks=quiet",
)


@dataclass
class Run:
    """One job of train.py; a row is an experiment, and what differs from it, as on the command line."""

    row: str
    folder: Path
    overrides: tuple[str, ...]

    @property
    def experiment(self) -> str:
        return self.row.split()[0]

    @property
    def report(self) -> dict | None:
        file = self.folder / "report.json"
        return json.loads(file.read_text()) if file.exists() else None

    def start(self, threads: int) -> subprocess.Popen:
        """train.py, which skips what is finished, and refuses a folder that holds a run with other settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            str(ROOT / "train.py"),
            f"experiment={self.experiment}",
            *self.overrides,
            *self.row.split()[1:],
        ]
        command += [f"hydra.run.dir={self.folder}", "ckpt_path=auto"]
        with (self.folder / "output.txt").open("a") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for this process, which stops them
                env=os.environ | {"OMP_NUM_THREADS": str(threads)},
            )


def finish(runs: list[Run], jobs: int, deadline: float) -> list[Run]:
    """Run them all, several at once; stop and save what is at work when the time is up or a run is refused.

    Returns:
        Those that have failed.

    Raises:
        SystemExit: a run was refused, or the time is up; the next call goes on.
        KeyboardInterrupt: as everything that ends this call, after those at work have saved themselves.
    """
    waiting, working, failed = deque(runs), {}, []
    threads = max((os.cpu_count() or 1) // jobs, 1)
    try:
        while waiting or working:
            while waiting and len(working) < jobs and time.monotonic() < deadline:
                run = waiting.popleft()
                print(f"{time.strftime('%H:%M:%S')}  {run.folder}", flush=True)
                working[run.start(threads)] = run
            for process in [p for p in working if p.poll() is not None]:
                run = working.pop(process)
                if process.returncode == REFUSED:
                    raise SystemExit(f"{run.folder}: {(run.folder / 'output.txt').read_text().splitlines()[-1]}")
                if process.returncode or run.report is None:
                    failed.append(run)
            if time.monotonic() >= deadline:
                left = len(waiting) + len(working)
                raise SystemExit(f"the time is up, {left} runs are left: the same command goes on")
            time.sleep(1)
    finally:
        stop(working)
    return failed


def refuse_failures(failed: list[Run]) -> None:
    if failed:
        raise SystemExit("failed: " + ", ".join(str(run.folder / "output.txt") for run in failed))


def stop(working: Iterable[subprocess.Popen]) -> None:
    """Have them save themselves."""
    for process in working:
        process.send_signal(signal.SIGTERM)
    for process in working:
        process.wait()


def every_row(table: str) -> list[str]:
    """Of a table at any length, in its order."""
    return list(dict.fromkeys(row for rows in (PUBLISHED, LONG, QUICK) for row in rows.get(table, ())))


def rows_of(options: argparse.Namespace) -> list[str]:
    """The experiments of the table that were asked for."""
    table = every_row(options.table)
    if options.rows:
        wanted = [name for name in table if name in options.rows or name.split("/")[1] in options.rows]
        known = {name.split("/")[1] for name in table} | set(table)
        if unknown := [row for row in options.rows if row not in known]:
            raise SystemExit(f"{', '.join(unknown)} is no row of {options.table}; the rows are {', '.join(table)}")
        return wanted
    rows = QUICK.get(options.table, table) if options.quick else LONG.get(options.table) or PUBLISHED[options.table]
    if not rows:
        raise SystemExit(f"the table {options.table} is one of --quick")
    return list(rows)


def searched(options: argparse.Namespace, rows: list[str], deadline: float) -> dict[str, float]:
    """The best rate of every row, on validation, with half the epochs and another seed; a failed run has none right."""
    if len(options.rates) == 1:
        return dict.fromkeys(rows, options.rates[0])
    runs = {
        (row, rate): Run(
            row,
            options.folder / folder_of(row) / f"search_{rate}",
            (
                *overrides(options, options.epochs // 2),
                f"optimizer.lr={rate}",
                f"seed={SEARCH_SEED}",
                "test=false",
            ),
        )
        for row in rows
        for rate in options.rates
    }
    failed = finish(list(runs.values()), options.jobs, deadline)
    for row in rows:
        if all(runs[row, rate] in failed for rate in options.rates):
            refuse_failures(failed)
    scores = {key: 0.0 if run in failed else run.report["val_accuracy"] for key, run in runs.items()}
    for row in rows:
        found = ", ".join(f"{rate}: {100 * scores[row, rate]:.1f} %" for rate in options.rates)
        print(f"{row}: validation by rate {found}", flush=True)
    return {row: max(options.rates, key=lambda rate: scores[row, rate]) for row in rows}


def seeded(options: argparse.Namespace, row: str, seed: int, rate: float | None) -> Run:
    """The training of a row that counts, with the rate of the search or of the recipe."""
    found = (*overrides(options, options.epochs), f"seed={seed}", *([f"optimizer.lr={rate}"] if rate else []))
    name = f"seed_{seed}_rate_{rate}" if rate else f"seed_{seed}"
    return Run(row, options.folder / folder_of(row) / name, found)


def earlier(folder: Path, row: str) -> tuple[str, list[dict]] | None:
    """The rate and the reports of a row whose seeds have all finished in a folder; of several rates, the best on
    validation."""
    at: dict[str, list[dict | None]] = {}
    for place in sorted((folder / folder_of(row)).glob("seed_*")):
        at.setdefault(place.name.partition("_rate_")[2], []).append(Run(row, place, ()).report)
    whole = {rate: [run for run in runs if run] for rate, runs in at.items() if None not in runs}
    return max(whole.items(), key=lambda found: statistics.mean(r["val_accuracy"] for r in found[1]), default=None)


def folder_of(row: str) -> str:
    """A row as a path that Hydra takes without quotes."""
    return re.sub(r"[^\w/.-]+", "_", row)


def overrides(options: argparse.Namespace, epochs: int) -> tuple[str, ...]:
    if not options.quick:
        return tuple(options.overrides)
    return (*QUICK_OVERRIDES, f"trainer.max_epochs={max(epochs, 1)}", *options.overrides)


def markdown(options: argparse.Namespace, reports: dict[str, list[dict]], rates: dict[str, float | str]) -> str:
    """One line a row."""
    first = next(iter(reports.values()))[0]
    split, used = first["split"], first["used"]
    lines = [
        f"{first['data']['name']} ({first['data']['source']}), {split['train']} / {split['val']} / {split['test']} "
        f"pictures for training / validation / test, {used['test']} of the last looked at; weights chosen on "
        "validation; mean ± standard deviation over seeds. The published figures are of the official splits and full "
        "trainings" + (", chosen on the test set." if options.table != "pcam" else "."),
        "",
        "| row | parameters | epochs × pictures | rate | validation, % | test, % | published, % | seconds "
        "| an epoch, s | epochs to 97, 98 % | seeds |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row, runs in reports.items():
        published = PUBLISHED[options.table].get(row.removesuffix(AS_PUBLISHED))
        cells = [row, f"{runs[0]['parameters']:,}", f"{runs[0]['epochs']} × {runs[0]['used']['train']}"]
        cells += [rates.get(row, "recipe"), score("val", runs), score("test", runs)]
        cells += ["" if published is None else published, f"{sum(r['train_seconds'] for r in runs) / len(runs):.0f}"]
        cells.append(f"{sum(r['seconds_per_epoch'] for r in runs) / len(runs):.1f}")
        cells.append(", ".join(epochs_to(level, runs) for level in (0.97, 0.98)))
        cells.append(", ".join(str(r["seed"]) for r in runs))
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def score(part: str, runs: list[dict]) -> str:
    """Accuracy on a part; — where the runs were told not to test."""
    return spread([run[f"{part}_accuracy"] for run in runs])


def main(options: argparse.Namespace) -> None:
    rows = rows_of(options)
    name = "_".join(["accuracy", options.table, *(["quick"] if options.quick else []), *(options.rows or [])])
    name = options.folder.name if options.folder else folder_of(name).replace("/", "_")
    options.folder = options.folder or Path("multirun") / name
    began, is_new = time.monotonic(), not options.folder.exists()
    deadline = began + 60 * options.budget
    rates = searched(options, rows, deadline) if options.quick else {}
    runs = {row: [seeded(options, row, seed, rates.get(row)) for seed in range(options.seeds)] for row in rows}
    refuse_failures(finish([run for of_row in runs.values() for run in of_row], options.jobs, deadline))
    reports = {row: [run.report for run in of_row] for row, of_row in runs.items()}
    data = data_of(reports[rows[0]][0])
    for row in set(every_row(options.table)) - set(rows):
        if (found := earlier(options.folder, row)) and data_of(found[1][0]) == data:
            rates[row], reports[row] = found[0] or "recipe", found[1]
    reports = {row: reports[row] for row in every_row(options.table) if row in reports}
    text = markdown(options, reports, rates)
    if is_new:
        text += f"\n\nAll of it took {(time.monotonic() - began) / 60:.0f} minutes, {options.jobs} run(s) at a time."
    print(text)
    save(name, shlex.join(["python", "benchmarks/accuracy.py", *sys.argv[1:]]), text)
    saved = {"command": sys.argv[1:], "machine": describe(), "rates": rates, "reports": reports}
    (results() / f"{name}.json").write_text(json.dumps(saved, indent=1))
    draw(reports, results() / f"{name}.png")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line, with what follows -- as `overrides`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--table", choices=tuple(PUBLISHED), default="rotmnist")
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="some of the table's, such as r4_sa")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="MINUTES")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time, each with its share of the cores")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--epochs", type=int, default=3, help="of --quick, of 2 000 pictures each")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.005, 0.0125, 0.03], help="of --quick's search")
    parser.add_argument("--folder", type=Path, help="of the runs; its name is that of the results")
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:cut])
    for name in ("seeds", "jobs", "epochs"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, but got {getattr(options, name)}")
    options.overrides = arguments[cut + 1 :]
    return options


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main(parse(sys.argv[1:]))
