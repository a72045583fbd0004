"""A table of finished runs: mean and spread over seeds, from the report.json of every run below some folders.

python train.py -m model=digits_r4_sa,digits_z2_sa seed=0,1,2 hydra.sweep.dir=multirun/digits
python benchmarks/table.py multirun/digits --save digits
"""

import argparse
import json
import statistics
from pathlib import Path

import yaml
from _machine import add_record, save

COLUMNS = (
    "network",
    "parameters",
    "training pictures seen",
    "seeds",
    "validation, %",
    "test, %",
    "error, exact elements",
)
OF_NO_ROW = ("seed=", "ckpt_path=", "callbacks", "data.root=", "hydra", "logger", "report=", "tags=", "trainer.enable_")


def reports(folders: list[Path]) -> list[dict]:
    """Every report below the folders, in the order of their paths; runs that were tested, if there are any.

    Those that were not are searches then, and may have looked at other parts.

    Raises:
        ValueError: no report, or runs on different data.
    """
    files = [file for folder in folders for file in sorted(folder.rglob("report.json"))]
    found = [json.loads(file.read_text()) | {"folder": file.parent.name, "words": words(file.parent)} for file in files]
    if not found:
        raise ValueError(f"there is no report.json below {', '.join(map(str, folders))}")
    found = [report for report in found if report["test_accuracy"] is not None] or found
    data = set(map(data_of, found))
    if len(data) > 1:
        raise ValueError(f"these runs cannot stand in one table: they saw different data, {sorted(data)}")
    return found


def words(folder: Path) -> tuple[str, ...]:
    """What was chosen on the command line of a run, but for its seed and for where and how it runs."""
    noted = folder / ".hydra" / "overrides.yaml"
    chosen = yaml.safe_load(noted.read_text()) if noted.is_file() else []
    return tuple(sorted(word for word in chosen if not word.lstrip("+").startswith(OF_NO_ROW)))


def data_of(report: dict) -> str:
    """What a run has been validated and tested on; of its training pictures there may have been fewer or more."""
    split, used = report["split"], report["used"]
    return json.dumps([report["data"], split["val"], split["test"], used["val"], used["test"]])


def table(found: list[dict]) -> str:
    """One row for each network, length of training and choice of values; of one seed twice, a row for each run."""
    alike: dict[tuple, list[dict]] = {}
    for report in found:
        seen = report["epochs"] * report["used"]["train"]
        alike.setdefault((report["model"], report["parameters"], seen), []).append(report)
    rows: dict[tuple, list[dict]] = {}
    for (model, *rest), runs in alike.items():
        for own, same in by_words(runs).items():
            name = f"{model} ({' '.join(own)})" if own else model
            if len({run["seed"] for run in same}) == len(same):
                rows[(name, *rest)] = same
            else:  # no seeds of one another
                rows |= {(f"{name} ({run['folder']})", *rest): [run] for run in same}
    data, split, used = found[0]["data"], found[0]["split"], found[0]["used"]
    part = "" if used["test"] == split["test"] else f", of which {used['val']} and {used['test']} were looked at"
    machines = sorted({report["machine"] for report in found})
    training = ", ".join(map(str, sorted({report["split"]["train"] for report in found})))
    lines = [
        f"{data['name']} ({data['source']}), {training} / {split['val']} / {split['test']} for training / "
        f"validation / test{part}; mean ± standard deviation over seeds; trained on {' and '.join(machines)}.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
    ]
    for (model, parameters, seen), runs in rows.items():
        exact = [e["error"] for run in runs for e in run["equivariance_error"].values() if e["exact"]]
        cells = [model, f"{parameters:,}", f"{seen:,}", ", ".join(str(s) for s in sorted(run["seed"] for run in runs))]
        cells += [
            spread([run[f"{part}_accuracy"] for run in runs], 2 if used[part] >= 10_000 else 1)
            for part in ("val", "test")
        ]
        lines.append("| " + " | ".join(map(str, [*cells, f"{max(exact):.1e}"])) + " |")
    return "\n".join(lines)


def by_words(runs: list[dict]) -> dict[tuple[str, ...], list[dict]]:
    """Runs by what was chosen for them and not for all."""
    common = set.intersection(*(set(run["words"]) for run in runs))
    found: dict[tuple[str, ...], list[dict]] = {}
    for run in runs:
        found.setdefault(tuple(word for word in run["words"] if word not in common), []).append(run)
    return found


def spread(shares: list[float | None], places: int = 1) -> str:
    """Mean and standard deviation in percent; — where one was not measured."""
    if None in shares:
        return "—"
    percent = [100 * share for share in shares]
    deviation = f" ± {statistics.stdev(percent):.{places}f}" if len(percent) > 1 else ""
    return f"{statistics.mean(percent):.{places}f}{deviation}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--save", metavar="NAME", help="also write NAME.md")
    options = parser.parse_args()
    try:
        text = table(reports(options.folders))
    except ValueError as error:
        raise SystemExit(f"table.py: {error}") from None
    print(text)
    if options.save:
        folders = " ".join(map(str, options.folders))
        save(options.save, f"python benchmarks/table.py {folders} --save {options.save}", text)


if __name__ == "__main__":
    main()
