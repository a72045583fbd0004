"""The tables and the figure of Romero & Cordonnier 2021, of the runs that there are.

    python benchmarks/figures.py multirun/accuracy_rotmnist multirun/accuracy_neighbourhood

The folders are those that `accuracy.py` filled, for any of its tables; unfinished runs are left out. Table 1 has
accuracy, time and memory against the neighbourhood, table 2 accuracy by network, figure 2 early training. Its curves
are of the validation part: the test part is seen once. Epochs to 90 and 95 % say who converges faster.
"""

import argparse
import json
import sys
from pathlib import Path

from _machine import add_record, save
from accuracy import draw, epochs_to
from published import AS_PUBLISHED, PUBLISHED, PUBLISHED_TIMES
from table import spread

Rows = dict[str, list[dict]]


def rows_below(folders: list[Path]) -> Rows:
    """Reports by row, <data>/<network> and what differs from it, in the papers' order; searches were not tested."""
    rows: Rows = {}
    for folder in folders:
        for file in sorted(folder.rglob("report.json")):
            report = json.loads(file.read_text())
            if report.get("test_accuracy") is not None:
                name = file.parent.parent.relative_to(folder).as_posix()
                rows.setdefault(name.replace("_model.published_true", AS_PUBLISHED), []).append(report)
    order = [name for table in PUBLISHED.values() for name in table]
    places = {
        row: order.index(base) if (base := row.removesuffix(AS_PUBLISHED)) in order else len(order) for row in rows
    }
    return {row: rows[row] for row in sorted(rows, key=lambda row: (places[row], row))}


def published(row: str) -> float | str:
    figures = {name: figure for table in PUBLISHED.values() for name, figure in table.items()}
    figure = figures.get(row.removesuffix(AS_PUBLISHED))
    return "" if figure is None else figure


def table_1(rows: Rows) -> list[str]:
    """Accuracy, seconds of an epoch and memory against the neighbourhood."""
    lines = [
        "| row | test, % | published, % | an epoch, s | published, min:s and GPUs | memory, MB | seeds |",
        "|---|---|---|---|---|---|---|",
    ]
    for row, runs in rows.items():
        if (base := row.removesuffix(AS_PUBLISHED)) in PUBLISHED_TIMES:
            time, gpus = PUBLISHED_TIMES[base]
            seconds = sum(run["seconds_per_epoch"] for run in runs) / len(runs)
            memory = max(run["peak_memory_mb"] for run in runs)
            test = spread([run["test_accuracy"] for run in runs])
            lines.append(
                f"| {row} | {test} | {published(row)} | {seconds:.1f} | {time}, {gpus} | {memory:,.0f} | {len(runs)} |"
            )
    return lines


def table_2(rows: Rows) -> list[str]:
    """Accuracy by network, and how fast it came."""
    lines = [
        "| row | parameters | test, % | published, % | epochs | to 90, 95 % of validation | seeds |",
        "|---|---|---|---|---|---|---|",
    ]
    for row, runs in rows.items():
        if row.removesuffix(AS_PUBLISHED) not in PUBLISHED_TIMES:
            test = spread([run["test_accuracy"] for run in runs])
            reached = ", ".join(epochs_to(level, runs) for level in (0.90, 0.95))
            cells = (row, f"{runs[0]['parameters']:,}", test, published(row), runs[0]["epochs"], reached, len(runs))
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def main(options: argparse.Namespace) -> None:
    rows = rows_below(options.folders)
    if not rows:
        raise SystemExit(f"no run that was tested lies below {', '.join(map(str, options.folders))}")
    text = "\n".join(["Table 1", "", *table_1(rows), "", "Table 2", "", *table_2(rows)])
    print(text)
    save("figures", " ".join(["python benchmarks/figures.py", *sys.argv[1:]]), text)
    draw(rows, "figures")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    main(parser.parse_args())
