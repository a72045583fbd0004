"""How fast runs learn: their curves of validation, and when they come to a level.

python benchmarks/_curves.py benchmarks/results/accuracy_*.json    # draws recorded curves anew, beside these files
"""

import itertools
import json
import sys
import textwrap
from pathlib import Path

__all__ = ["draw", "epochs_to"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A8A")  # Okabe & Ito
MARKS = (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"))


def epochs_to(level: float, runs: list[dict]) -> str:
    """After how many epochs validation first was at a level, in the mean over seeds; — if one never was."""
    reached = [
        next((n for n, epoch in enumerate(run["history"], 1) if epoch["val/accuracy"] >= level), None) for run in runs
    ]
    return "—" if None in reached else f"{sum(reached) / len(reached):.0f}"


def draw(reports: dict[str, list[dict]], file: Path) -> None:
    """Validation accuracy against epochs, the mean over seeds and its range."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = {row: textwrap.fill(row, 72, subsequent_indent="    ", break_on_hyphens=False) for row in reports}
    lines = sum(1 + name.count("\n") for name in names.values())
    figure, axis = plt.subplots(figsize=(6, 3.9 + 0.19 * lines), layout="constrained")  # the legend takes nothing away
    styles = [(colour, mark) for mark in MARKS for colour in COLOURS]  # 32 that can be told apart
    for (row, runs), (colour, (mark, dashes)) in zip(reports.items(), itertools.cycle(styles), strict=False):
        curves = [[100 * epoch["val/accuracy"] for epoch in run["history"]] for run in runs]
        epochs = range(1, min(map(len, curves)) + 1)
        at_each = [[curve[epoch - 1] for curve in curves] for epoch in epochs]
        (line,) = axis.plot(epochs, [sum(values) / len(values) for values in at_each], marker=mark, linestyle=dashes,
                           color=colour, markersize=4, label=names[row])  # fmt: skip
        axis.fill_between(epochs, *zip(*((min(v), max(v)) for v in at_each), strict=True), linewidth=0,
                          alpha=0.2 if len(reports) <= 6 else 0.07, color=line.get_color())  # fmt: skip
    seeds = sorted({*map(len, reports.values())})
    of = "one run" if seeds == [1] else f"mean and range of {' or '.join(map(str, seeds))} runs"
    axis.set(xlabel="epoch", ylabel=f"validation accuracy, %\n({of})")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.grid(alpha=0.3)
    figure.legend(loc="outside lower center", fontsize="small")
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    for recorded in map(Path, sys.argv[1:]):
        draw(json.loads(recorded.read_text())["reports"], recorded.with_suffix(".png"))
