"""How fast runs learn: their curves of validation, and when they come to a level."""

from pathlib import Path

__all__ = ["draw", "epochs_to"]


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

    figure, axis = plt.subplots(figsize=(6, 5), layout="constrained")
    for row, runs in reports.items():
        curves = [[100 * epoch["val/accuracy"] for epoch in run["history"]] for run in runs]
        epochs = range(1, min(map(len, curves)) + 1)
        at_each = [[curve[epoch - 1] for curve in curves] for epoch in epochs]
        (line,) = axis.plot(epochs, [sum(values) / len(values) for values in at_each], "o-", markersize=3, label=row)
        axis.fill_between(epochs, *zip(*((min(v), max(v)) for v in at_each), strict=True), alpha=0.2,
                          color=line.get_color())  # fmt: skip
    axis.set(xlabel="epoch", ylabel="validation accuracy, %")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.grid(alpha=0.3)
    figure.legend(loc="outside lower center", fontsize="small")
    figure.savefig(file, dpi=110)
