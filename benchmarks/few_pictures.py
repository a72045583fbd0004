"""Sample efficiency: test accuracy against the number of training pictures, of equivariant networks and of others.

    python benchmarks/few_pictures.py -- data.source=mnist data.root=path/to/folder/with/MNIST
    python benchmarks/few_pictures.py --rows digits/gsa digits/gsa_z2 --pictures 50 200 1200 --steps 300

Every row, an experiment and what differs from it, takes the same number of steps of its recipe on so many of the
training pictures, of every class its share. The seed is that of the weights, of the split and of the choice. Weights
are chosen on validation, four times. Every run is one of train.py in a folder of its own; called again, finished
runs are kept and unfinished ones go on.
"""

import argparse
import json
import shlex
import signal
import sys
from pathlib import Path

from _machine import add_record, describe, results, save
from accuracy import QUICK_OVERRIDES, Run, finish, folder_of, refuse_failures
from table import spread

from gsa.saved import read_checkpoint

ROWS = (
    "rotmnist/gsa",
    "rotmnist/gsa model.group=Z2",
    "rotmnist/gsa model.group=Z2 data.augmentation=[turns]",
    "rotmnist/gsa model.group=Z2 model.channels=48 data.augmentation=[turns]",
    "rotmnist/r4_cnn model.dropout=0.1",
    "rotmnist/z2_cnn",
)
EPOCHS = 4


def runs_of(options: argparse.Namespace) -> dict[tuple[str, int], list[Run]]:
    """The runs of every row and number of pictures, one a seed."""
    common = [
        *(word for word in QUICK_OVERRIDES if word != "recipe=fast" and "limit_train" not in word),
        f"recipe={options.recipe}",
        f"trainer.max_epochs={EPOCHS}",
        f"trainer.limit_train_batches={options.steps // EPOCHS}",
        "trainer.limit_val_batches=10",
        *options.overrides,
    ]
    return {
        (row, pictures): [
            Run(
                row,
                options.folder / folder_of(row) / f"{pictures}_seed_{seed}",
                (*common, f"data.train_pictures={pictures}", f"seed={seed}", f"data.split_seed={seed}"),
            )
            for seed in range(options.seeds)
        ]
        for row in options.rows
        for pictures in options.pictures
    }


def refuse_other_steps(runs: list[Run], steps: int) -> None:
    """An epoch ends with its last batch, however many more were asked for."""
    for run in runs:
        if (done := read_checkpoint(run.folder / "checkpoints" / "last.ckpt")["global_step"]) != steps:
            raise SystemExit(f"{run.folder}: expected {steps} steps, but an epoch has {done // EPOCHS}: --steps {done}")


def markdown(reports: dict[tuple[str, int], list[dict]]) -> str:
    """One line a row, one column a number of pictures."""
    rows, numbers = dict.fromkeys(row for row, _ in reports), sorted({pictures for _, pictures in reports})
    first = next(iter(reports.values()))[0]
    lines = [
        f"{first['data']['name']} ({first['data']['source']}), {first['used']['test']} test pictures; weights chosen "
        f"on {first['used']['val']} of validation; as many steps for all; test accuracy in %, "
        f"mean ± standard deviation over seeds {', '.join(str(run['seed']) for run in next(iter(reports.values())))}.",
        "",
        "| row | parameters | " + " | ".join(f"{number:,} pictures" for number in numbers) + " |",
        "|" + "---|" * (2 + len(numbers)),
    ]
    for row in rows:
        cells = [row, f"{reports[row, numbers[0]][0]['parameters']:,}"]
        cells += [spread([run["test_accuracy"] for run in reports[row, number]]) for number in numbers]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(reports: dict[tuple[str, int], list[dict]], file: Path) -> None:
    """Test error against training pictures, both logarithmic: the mean over seeds and its range."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axis = plt.subplots(figsize=(6, 5.5), layout="constrained")
    for row in dict.fromkeys(row for row, _ in reports):
        numbers = sorted(pictures for name, pictures in reports if name == row)
        errors = [[100 - 100 * run["test_accuracy"] for run in reports[row, number]] for number in numbers]
        (line,) = axis.plot(numbers, [sum(found) / len(found) for found in errors], "o-", markersize=4, label=row)
        axis.fill_between(numbers, *zip(*((min(e), max(e)) for e in errors), strict=True), alpha=0.2,
                          color=line.get_color())  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="training pictures", ylabel="test error, %")
    numbers = sorted({pictures for _, pictures in reports})
    axis.set_xticks(numbers, [f"{number:,}" for number in numbers])
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axis.yaxis.set_major_formatter("{x:g}")
    for of in (axis.xaxis, axis.yaxis):
        of.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.3)
    figure.legend(loc="outside lower center", fontsize="small")
    figure.savefig(file, dpi=110)


def main(options: argparse.Namespace) -> None:
    runs = runs_of(options)
    by_seed = [run for of_seed in zip(*runs.values(), strict=True) for run in of_seed]
    for some in (by_seed[:1], by_seed[1:]):  # the first tells soon
        refuse_failures(finish(some, options.jobs, float("inf")))
        refuse_other_steps(some, options.steps // EPOCHS * EPOCHS)
    reports = {key: [run.report for run in found] for key, found in runs.items()}
    text = markdown(reports)
    print(text)
    save(options.folder.name, shlex.join(["python", "benchmarks/few_pictures.py", *sys.argv[1:]]), text)
    kept = [{"row": row, "pictures": number, "reports": found} for (row, number), found in reports.items()]
    saved = {"command": sys.argv[1:], "machine": describe(), "runs": kept}
    (results() / f"{options.folder.name}.json").write_text(json.dumps(saved, indent=1))
    draw(reports, results() / f"{options.folder.name}.png")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line, with what follows -- as `overrides`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), help="experiments, with what differs from them")
    parser.add_argument("--pictures", type=int, nargs="+", default=[100, 300, 1000, 3000])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000, help="of every run")
    parser.add_argument("--recipe", default="rotmnist_gsa", help="of all rows")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time, each with its share of the cores")
    parser.add_argument("--folder", type=Path, default=Path("multirun/few_pictures"), help="of the runs and results")
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:cut])
    for name, least in (("seeds", 1), ("jobs", 1), ("steps", EPOCHS)):
        if getattr(options, name) < least:
            parser.error(f"--{name} must be at least {least}, but got {getattr(options, name)}")
    options.overrides = arguments[cut + 1 :]
    return options


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main(parse(sys.argv[1:]))
