"""A table is trained row by row: searches, seeds, what is there already, and the figures of it."""

import json
import signal
import subprocess
import sys
import time

import accuracy
import published
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from tests.benchmarks.test_table import write_report


def options_of(*arguments):
    return accuracy.parse([*arguments, "--", "data.source=mnist"])


def write_accuracy_report(run, value, history=(0.1, 0.2)):
    write_report(
        run.folder, model=run.experiment, val_accuracy=value, test_accuracy=value - 0.1, train_seconds=3.0,
        seconds_per_epoch=1.5, peak_memory_mb=7,
        history=[{"val/accuracy": v} for v in history],
    )  # fmt: skip


def test_a_table_searches_with_equal_means_and_chooses_on_validation(tmp_path, monkeypatch):
    started = []

    def finish(runs, jobs, deadline):
        for run in runs:
            started.append(run)
            rate = next(float(o.split("=")[1]) for o in run.overrides if o.startswith("optimizer.lr"))
            best = {"rotmnist/z2_sa": 0.0125}.get(run.experiment, 0.005)
            write_accuracy_report(run, 0.9 if rate == best else 0.5)
        return [run for run in runs if run.folder.name == "search_0.03"]  # too fast for all

    monkeypatch.setattr(accuracy, "finish", finish)
    monkeypatch.setattr(accuracy, "results", lambda: tmp_path)
    monkeypatch.setattr(accuracy, "save", lambda name, command, text: (tmp_path / f"{name}.md").write_text(text))
    accuracy.main(options_of("--quick", "--rows", "z2_sa", "r4_sa", "--folder", str(tmp_path / "runs")))
    searches = [run for run in started if "test=false" in run.overrides]
    counted = [run for run in started if run not in searches]
    assert len(searches) == 2 * 3 and len(counted) == 2 * 3
    assert {run.experiment: set(o for o in run.overrides if "lr" in o) for run in counted} == {
        "rotmnist/z2_sa": {"optimizer.lr=0.0125"}, "rotmnist/r4_sa": {"optimizer.lr=0.005"},
    }  # fmt: skip
    assert all("seed=1000" in run.overrides for run in searches)
    shared = [{o for o in run.overrides if not o.startswith(("optimizer.lr", "seed"))} for run in counted]
    assert all(overrides == shared[0] and "data.source=mnist" in overrides for overrides in shared)
    text = (tmp_path / "runs.md").read_text()
    assert (
        "| rotmnist/z2_sa | 1,000 | 2 × 3 | 0.0125 | 90.0 ± 0.0 | 80.0 ± 0.0 | 96.37 | 3 | 1.5 | —, — | 0, 0, 0 |"
        in text
    )
    assert (tmp_path / "runs.png").stat().st_size > 1000


def test_a_table_holds_the_rows_of_earlier_calls_in_its_folder(tmp_path, monkeypatch):
    def finish(runs, jobs, deadline):
        for run in runs:
            write_accuracy_report(run, 0.5)
        return []

    monkeypatch.setattr(accuracy, "finish", finish)
    monkeypatch.setattr(accuracy, "results", lambda: tmp_path)
    monkeypatch.setattr(accuracy, "save", lambda name, command, text: (tmp_path / f"{name}.md").write_text(text))
    shared = ["--quick", "--seeds", "2", "--rates", "0.01", "--folder", str(tmp_path / "runs")]
    accuracy.main(options_of("--rows", "r4_sa", *shared))
    folder = tmp_path / "runs" / "rotmnist"
    write_report(folder / "z2_cnn" / "seed_0_rate_0.01", split={"train": 9, "val": 9, "test": 9})  # of other data
    write_report(folder / "r4_cnn" / "seed_0_rate_0.01")
    (folder / "r4_cnn" / "seed_1_rate_0.01").mkdir()  # has not finished
    accuracy.main(options_of("--rows", "z2_sa", *shared))
    rows = [line for line in (tmp_path / "runs.md").read_text().splitlines() if line.startswith("| rotmnist")]
    assert [row.split(" | ")[:4] for row in rows] == [
        [f"| rotmnist/{name}", "1,000", "2 × 3", "0.01"] for name in ("z2_sa", "r4_sa")
    ]
    saved = json.loads((tmp_path / "runs.json").read_text())
    assert {row: len(runs) for row, runs in saved["reports"].items()} == {"rotmnist/z2_sa": 2, "rotmnist/r4_sa": 2}


def test_a_row_that_is_not_in_the_table_is_refused():
    with pytest.raises(SystemExit, match="r5_sa is no row of rotmnist; the rows are rotmnist/z2_sa, "):
        accuracy.rows_of(options_of("--rows", "r5_sa"))


@pytest.mark.parametrize("wrong", ["--jobs=0", "--seeds=0"])
def test_numbers_of_nothing_are_refused(wrong, capsys):
    with pytest.raises(SystemExit):
        options_of(wrong)
    assert "must be at least 1, but got 0" in capsys.readouterr().err


def test_a_row_may_differ_from_its_experiment(tmp_path, monkeypatch):
    row = "rotmnist/r4_cnn model.dropout=0 optimizer=muon"
    assert row in accuracy.rows_of(options_of("--quick"))
    run = accuracy.seeded(options_of("--quick", "--folder", str(tmp_path)), row, 0, 0.01)
    assert run.experiment == "rotmnist/r4_cnn" and run.folder.parent.name == "r4_cnn_model.dropout_0_optimizer_muon"
    parser = OverridesParser.create()
    for quick in published.QUICK.values():
        for name in quick:
            folder = accuracy.seeded(options_of("--quick", "--folder", "runs"), name, 0, 0.01).folder
            assert parser.parse_override(f"hydra.run.dir={folder}").value() == str(folder)
    with pytest.raises(HydraException):
        parser.parse_override(f"hydra.run.dir=runs/{row.replace(' ', ',')}")
    commands = []
    monkeypatch.setattr(accuracy.subprocess, "Popen", lambda command, **options: commands.append(command))
    run.start(1)
    assert {"experiment=rotmnist/r4_cnn", "model.dropout=0", "optimizer=muon"} <= set(commands[0])


def test_a_row_that_was_not_tested_says_so():
    runs = [{"val_accuracy": 0.5, "test_accuracy": None}]
    assert accuracy.score("val", runs) == "50.0" and accuracy.score("test", runs) == "—"


def test_epochs_to_a_level():
    runs = [{"history": [{"val/accuracy": v} for v in values]} for values in ((0.5, 0.97, 0.96), (0.2, 0.96, 0.98))]
    assert accuracy.epochs_to(0.97, runs) == "2" and accuracy.epochs_to(0.98, runs) == "—"


def test_failed_runs_are_named_and_time_that_is_up_ends_the_table(tmp_path, monkeypatch):
    runs = [accuracy.Run("none/none", tmp_path / name, ()) for name in "ab"]
    write_accuracy_report(runs[0], 0.5)
    commands = {"a": "raise SystemExit(0)", "b": "raise SystemExit(3)"}

    def start(run, threads):
        return subprocess.Popen([sys.executable, "-c", commands[run.folder.name]])

    monkeypatch.setattr(accuracy.Run, "start", start)
    assert accuracy.finish(runs, 2, float("inf")) == [runs[1]]
    commands["b"] = "raise SystemExit(0)"  # and no report
    assert accuracy.finish(runs, 2, float("inf")) == [runs[1]]
    with pytest.raises(SystemExit, match=f"failed: {tmp_path / 'b' / 'output.txt'}$"):
        accuracy.refuse_failures([runs[1]])
    commands["b"] = "raise SystemExit(2)"
    runs[1].folder.mkdir()
    (runs[1].folder / "output.txt").write_text("…\nconfiguration refused: no data")
    with pytest.raises(SystemExit, match="b: configuration refused: no data"):
        accuracy.finish(runs, 2, float("inf"))
    commands["a"] = commands["b"] = "import time; time.sleep(60)"
    with pytest.raises(SystemExit, match="the time is up, 2 runs are left"):
        accuracy.finish(runs, 1, time.monotonic() + 1)


def test_whatever_ends_a_table_stops_its_runs_first(tmp_path, monkeypatch):
    started = []

    def start(run, threads):
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return started[-1]

    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(accuracy.Run, "start", start)
    monkeypatch.setattr(accuracy.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        accuracy.finish([accuracy.Run("none/none", tmp_path / name, ()) for name in "ab"], 2, float("inf"))
    assert [process.poll() for process in started] == [-signal.SIGTERM] * 2
