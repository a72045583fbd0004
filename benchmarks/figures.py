"""The tables and the figure of Romero & Cordonnier 2021, of the runs that there are.

    python benchmarks/figures.py                                # of the results in benchmarks/results
    python benchmarks/figures.py multirun/accuracy_rotmnist multirun/accuracy_neighbourhood

The folders are those that `accuracy.py` filled, for any of its tables; runs that are unfinished or were not tested are
left out. Table 1 has accuracy, time and memory against the neighbourhood, table 2 accuracy by network; rows of
different folders or results are never mixed. Figure 2, early training, is a picture of each whose name has `early` or
`neighbourhood` in it. Its curves are of the validation part, because the test part is seen once.
Epochs to 90 and 95 % say who converges faster.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from _curves import draw, epochs_to
from _machine import add_record, results, save
from published import AS_PUBLISHED, PUBLISHED, PUBLISHED_TIMES
from table import spread

Rows = dict[str, list[dict]]  # <data>/<network> and what differs from it → reports of its seeds

RESULTS = Path(__file__).parent / "results"
DRAWN = ("early", "neighbourhood")


def recorded() -> dict[str, Rows]:
    """The rows of every table in benchmarks/results, by its name."""
    files = sorted(RESULTS.glob("accuracy_*.json"))
    return {file.stem: in_order(json.loads(file.read_text())["reports"].items()) for file in files}


def below(folders: list[Path]) -> dict[str, Rows]:
    """The rows of every folder, by its path."""
    found = {}
    for folder in folders:
        files = [
            (f.parent.parent.relative_to(folder).as_posix(), f) for f in sorted(folder.rglob("seed_*/report.json"))
        ]
        found[str(folder)] = in_order(
            (name.replace("_model.published_true", AS_PUBLISHED), [json.loads(file.read_text())])
            for name, file in files
        )
    return found


def in_order(rows: Iterable[tuple[str, list[dict]]]) -> Rows:
    """Runs that were tested, by row, in the papers' order."""
    tested: Rows = {}
    for row, runs in rows:
        if seen := [run for run in runs if run.get("test_accuracy") is not None]:
            tested.setdefault(row, []).extend(seen)
    order = [name for table in PUBLISHED.values() for name in table]
    places = {row: order.index(base) if (base := bare(row)) in order else len(order) for row in tested}
    return {row: tested[row] for row in sorted(tested, key=lambda row: (places[row], row))}


def bare(row: str) -> str:
    return row.removesuffix(AS_PUBLISHED)


def published(row: str) -> float | str:
    figures = {name: figure for table in PUBLISHED.values() for name, figure in table.items()}
    figure = figures.get(bare(row))
    return "" if figure is None else figure


def table_1(rows: Rows) -> list[str]:
    """Accuracy, seconds of an epoch and memory against the neighbourhood."""
    lines = [
        "| row | epochs × pictures | test, % | published, % | an epoch, s | published, min:s and GPUs | memory, MB "
        "| seeds |",
        "|---" * 8 + "|",
    ]
    for row, runs in rows.items():
        if bare(row) in PUBLISHED_TIMES:
            seconds = f"{sum(run['seconds_per_epoch'] for run in runs) / len(runs):.1f}"
            memory = f"{max(run['peak_memory_mb'] for run in runs):,.0f}"
            cells = [*measured(row, runs), seconds, "{}, {}".format(*PUBLISHED_TIMES[bare(row)]), memory, len(runs)]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def table_2(rows: Rows) -> list[str]:
    """Accuracy by network, and how fast it came."""
    lines = [
        "| row | epochs × pictures | test, % | published, % | parameters | to 90, 95 % of validation | seeds |",
        "|---" * 7 + "|",
    ]
    for row, runs in rows.items():
        if bare(row) not in PUBLISHED_TIMES:
            reached = ", ".join(epochs_to(level, runs) for level in (0.90, 0.95))
            cells = [*measured(row, runs), f"{runs[0]['parameters']:,}", reached, len(runs)]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def measured(row: str, runs: list[dict]) -> list[str | float]:
    """A row, how long it was trained, and its accuracy beside the published."""
    length = f"{runs[0]['epochs']} × {runs[0]['used']['train']}"
    return [row, length, spread([run["test_accuracy"] for run in runs]), published(row)]


def main(options: argparse.Namespace) -> None:
    found = {name: rows for name, rows in (below(options.folders) if options.folders else recorded()).items() if rows}
    if not found:
        raise SystemExit(f"no run that was tested lies below {', '.join(map(str, options.folders)) or RESULTS}")
    parts = []
    for number, table in enumerate((table_1, table_2), 1):
        for name, rows in found.items():
            if len(lines := table(rows)) > 2:
                data = next(iter(rows.values()))[0]["data"]
                parts += [f"Table {number}: {name}, {data['name']} ({data['source']})", "", *lines, ""]
    text = "\n".join(parts).rstrip()
    print(text)
    save(options.save, shlex.join(["python", "benchmarks/figures.py", *sys.argv[1:]]), text)
    for name, rows in found.items():
        if any(part in Path(name).name for part in DRAWN):
            draw(rows, results() / f"figures_{Path(name).name.removeprefix('accuracy_')}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--save", metavar="NAME", default="figures", help="of the file of results")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    main(parser.parse_args())
