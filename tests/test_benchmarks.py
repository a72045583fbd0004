"""The yardstick of the benchmarks computes the same thing as the op; tables are made of reports."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

import gsa
from gsa import runner
from gsa.saved import write_checkpoint
from tests.ops.cases import CASES, tensors
from tests.test_commands import refusal

sys.path.insert(0, str(Path(gsa.__file__).parent.parent / "benchmarks"))
import accuracy
import biases
import content
import direct
import few_pictures
import figures
import published
import ship
import table


@pytest.mark.parametrize("poses, map_", CASES)
def test_the_direct_evaluation_equals_the_op(poses, map_):
    five, window, form = tensors(poses, map_)
    expected = gsa.ops.attend(*five, window, form=form)
    torch.testing.assert_close(direct.attend(*five, window, form=form), expected)
    if map_ == "prime sides":
        expected = gsa.ops.attend(*five, window, form=form, crop=2)
        torch.testing.assert_close(direct.attend(*five, window, form=form, crop=2), expected)


def test_everywhere_replaces_the_op_in_all_layers_and_puts_it_back(float64):
    network, x = gsa.create_model("digits_r4_sa").eval(), torch.rand(1, 1, 16, 16)
    expected, ours = network(x), gsa.ops.attend
    with direct.everywhere():
        assert gsa.ops.attend is direct.attend
        torch.testing.assert_close(network(x), expected)
    assert gsa.ops.attend is ours


def write_report(folder, **changes):
    report = {
        "model": "a", "parameters": 1000, "epochs": 2, "seed": 0, "machine": "m",
        "val_accuracy": 0.5, "test_accuracy": 0.4,
        "equivariance_error": {"90°": {"error": 1e-7, "exact": True}, "45°": {"error": 0.1, "exact": False}},
        "data": {"name": "d", "source": "s"}, "split": {"train": 3, "val": 2, "test": 1},
        "used": {"train": 3, "val": 2, "test": 1},
    }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(report | changes))


def test_the_table_has_mean_and_spread_over_seeds(tmp_path):
    write_report(tmp_path / "0")
    write_report(tmp_path / "1", seed=1, test_accuracy=0.6)
    write_report(tmp_path / "2", model="b", seed=0)
    rows = [line for line in table.table(table.reports([tmp_path])).splitlines() if line.startswith(("| a", "| b"))]
    assert rows == [
        "| a | 1,000 | 6 | 0, 1 | 50.0 ± 0.0 | 50.0 ± 14.1 | 1.0e-07 |",
        "| b | 1,000 | 6 | 0 | 50.0 | 40.0 | 1.0e-07 |",
    ]


def test_a_card_claims_no_symmetry_between_the_pixels(tmp_path):
    write_report(tmp_path / "0", group="R8", train_seconds=1.0, versions={"torch": "2"})
    card = ship.card(json.loads((tmp_path / "0" / "report.json").read_text()), [])
    assert "A network of the group R8" in card and "90° 1.0e-07, 45° 1.0e-01 (sampled)" in card


def test_runs_that_differ_in_more_than_the_seed_have_rows_of_their_own(tmp_path):
    write_report(tmp_path / "plain")
    write_report(tmp_path / "without dropout", test_accuracy=0.6)
    rows = table.table(table.reports([tmp_path])).splitlines()[-2:]
    assert [row.split(" | ")[0] for row in rows] == ["| a (plain)", "| a (without dropout)"]
    assert not any("±" in row for row in rows)


def test_what_a_sweep_has_chosen_is_no_other_seed(tmp_path):
    """Nor where a grid is not finished, and no seed is there twice."""
    for seed, words in enumerate(
        ["seed=0 optimizer.lr=1", "seed=1 optimizer.lr=1", "seed=2 optimizer.lr=2 logger=csv"]
    ):
        write_report(tmp_path / str(seed), seed=seed)
        (tmp_path / str(seed) / ".hydra").mkdir()
        (tmp_path / str(seed) / ".hydra" / "overrides.yaml").write_text(json.dumps([*words.split(), "test=true"]))
    rows = [row.split(" | ") for row in table.table(table.reports([tmp_path])).splitlines()[-2:]]
    assert [(row[0], row[3]) for row in rows] == [("| a (optimizer.lr=1)", "0, 1"), ("| a (optimizer.lr=2)", "2")]


def test_runs_that_were_not_tested_are_told_or_were_searches_for_others(tmp_path):
    untested = {"test_accuracy": None, "used": {"train": 3, "val": 2, "test": 0}}
    write_report(tmp_path / "r4_sa" / "search_0.1", seed=1000, **untested)
    assert "| 50.0 | — |" in table.table(table.reports([tmp_path])).splitlines()[-1]
    write_report(tmp_path / "r4_sa" / "seed_0")
    (row,) = table.table(table.reports([tmp_path])).splitlines()[4:]
    assert "| 0 | 50.0 | 40.0 |" in row


def test_runs_on_different_data_do_not_share_a_table(tmp_path):
    write_report(tmp_path / "0")
    write_report(tmp_path / "fewer", split={"train": 1, "val": 2, "test": 1})
    assert "d (s), 1, 3 / 2 / 1 for training" in table.table(table.reports([tmp_path]))
    write_report(tmp_path / "1", split={"train": 3, "val": 3, "test": 1})
    with pytest.raises(ValueError, match="different data"):
        table.reports([tmp_path])
    with pytest.raises(ValueError, match="no report.json"):
        table.reports([tmp_path / "nowhere"])


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


@pytest.mark.parametrize("kind", biases.KINDS, ids=str)
def test_transformers_without_biases_have_none_and_learn(kind):
    """Planted: a bias that is left in one."""
    network = biases.transformer(kind)
    names = [name for name, _ in network.named_parameters() if name.endswith("bias")]
    assert bool(names) is kind.has_biases and network(torch.rand(3, 8, 8)).shape == (3, 10)
    black = network(torch.zeros(2, 8, 8))
    assert kind.has_biases or not kind.is_rotary or not black.any()  # nothing in, nothing out
    if kind == biases.Kind(False, "rms", True):
        network[1].bias = torch.nn.Parameter(torch.ones(biases.CHANNELS))
        assert network(torch.zeros(2, 8, 8)).any()
        found = biases.measured(kind, seed=0, epochs=4)
        assert found["as trained"] > 20 and found.keys() == biases.CHANGES.keys()


def test_every_head_of_the_rotary_transformers_sees_rows_and_columns():
    """By their differences alone."""
    heads = biases.turned(torch.ones(1, biases.HEADS, biases.SIDE**2, biases.CHANNELS // biases.HEADS))
    scores = (heads @ heads.mT)[0]
    here, row, column = scores[:, 0, 0], scores[:, 0, biases.SIDE], scores[:, 0, 1]
    assert (here - row).min() > 0.1 and (here - column).min() > 0.1
    torch.testing.assert_close(scores[:, 5, 5 + biases.SIDE], row)
    torch.testing.assert_close(scores[:, 5, 6], column)


def test_sample_efficiency_is_measured_with_as_many_steps_on_more_and_more_pictures(tmp_path, monkeypatch):
    started = []

    def finish(runs, jobs, deadline):
        for run in runs:
            started.append(run)
            pictures = next(int(o.split("=")[1]) for o in run.overrides if o.startswith("data.train_pictures"))
            write_report(run.folder, test_accuracy=pictures / 100, split={"train": pictures, "val": 2, "test": 1})
            (run.folder / "checkpoints").mkdir()
            write_checkpoint({"global_step": 1000, "state_dict": {}}, run.folder / "checkpoints" / "last.ckpt")
        return []

    monkeypatch.setattr(few_pictures, "finish", finish)
    monkeypatch.setattr(few_pictures, "results", lambda: tmp_path)
    monkeypatch.setattr(few_pictures, "save", lambda name, _, text: (tmp_path / f"{name}.md").write_text(text))
    rows = ["rotmnist/gsa", "rotmnist/gsa model.group=Z2"]
    told = ["--rows", *rows, "--pictures", "20", "40", "--seeds", "2", "--folder", str(tmp_path / "few")]
    few_pictures.main(few_pictures.parse([*told, "--", "data.source=mnist"]))
    assert [run.overrides[-2:] for run in started] == [
        (f"seed={n}", f"data.split_seed={n}") for n in (0,) * 4 + (1,) * 4
    ]
    assert len({tuple(o for o in run.overrides if "seed" not in o and "pictures" not in o) for run in started}) == 1
    assert len({run.folder for run in started}) == 8
    text = (tmp_path / "few.md").read_text()
    assert all(f"| {row} | 1,000 | 20.0 ± 0.0 | 40.0 ± 0.0 |" in text for row in rows)
    assert (tmp_path / "few.png").stat().st_size > 1000
    shutil.rmtree(tmp_path / "few")
    with pytest.raises(SystemExit, match="expected 2000 steps, but an epoch has 250: --steps 1000"):
        few_pictures.main(few_pictures.parse([*told, "--steps", "2000"]))


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


def test_figures_are_made_of_the_runs_that_are_there(tmp_path, monkeypatch):
    rows = {"rotmnist/r4_sa": 0.8, "rotmnist/r4_sa_7x7": 0.6, "rotmnist/r4_sa_model.published_true": 0.7}
    for row, accuracy_of_it in rows.items():
        write_accuracy_report(accuracy.Run(row, tmp_path / row / "seed_0", ()), accuracy_of_it + 0.1)
    (tmp_path / "rotmnist/r4_sa/search_0.1").mkdir()
    (tmp_path / "rotmnist/r4_sa/search_0.1/report.json").write_text('{"test_accuracy": null}')
    found = figures.below([tmp_path])[str(tmp_path)]
    assert {row: len(runs) for row, runs in found.items()} == {
        "rotmnist/r4_sa": 1, "rotmnist/r4_sa_7x7": 1, "rotmnist/r4_sa model.published=true": 1,
    }  # fmt: skip
    (wide,) = figures.table_1(found)[2:]
    assert wide == "| rotmnist/r4_sa_7x7 | 2 × 3 | 60.0 | 97.33 | 1.5 | 9:03, 1 | 7 | 1 |"
    ours, theirs = figures.table_2(found)[2:]
    assert ours == "| rotmnist/r4_sa | 2 × 3 | 80.0 | 97.46 | 1,000 | —, — | 1 |"
    assert theirs.startswith("| rotmnist/r4_sa model.published=true | 2 × 3 | 70.0 | 97.46 | 1,000 |")
    with pytest.raises(SystemExit, match="no run that was tested lies below"):
        figures.main(SimpleNamespace(folders=[tmp_path / "rotmnist/r4_sa/search_0.1"], save="figures"))


def test_figures_are_made_of_what_is_recorded_too_each_apart(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figures, "results", lambda: tmp_path)
    monkeypatch.setattr(figures, "save", lambda name, command, text: None)
    figures.main(SimpleNamespace(folders=[], save="figures"))
    said = capsys.readouterr().out
    first, second = said.index("Table 1: accuracy_neighbourhood_quick"), said.index("Table 2: accuracy_early_quick")
    assert first < said.index("rotmnist/r4_sa_global") < second < said.index("| rotmnist/r16_sa |")
    assert "accuracy_search" not in said  # was not tested
    assert {file.name for file in tmp_path.iterdir()} == {f"figures_{part}_quick.png" for part in figures.DRAWN}


def test_every_row_with_a_published_figure_is_an_experiment():
    folder = Path(gsa.__file__).parent.parent / "configs" / "experiment"
    rows = [row for table in published.PUBLISHED.values() for row in table]
    networks = {f"{gsa.models.preset(name).data}/{name.partition('_')[2]}" for name in gsa.list_models()}
    assert len(rows) == len(set(rows))
    longer = [*published.QUICK.values(), *published.LONG.values(), published.PUBLISHED_TIMES]
    rows += [row.split()[0] for rows_of_it in longer for row in rows_of_it]
    assert not [row for row in rows if row not in networks and not (folder / f"{row}.yaml").exists()]
    assert sum(figure is not None for figures in published.PUBLISHED.values() for figure in figures.values()) == 20 + 9


@pytest.mark.parametrize(
    "row", sorted({row for name in published.PUBLISHED for row in accuracy.every_row(name) if " " in row})
)
def test_a_row_that_changes_an_experiment_is_not_refused(row):
    runner.register()
    assert refusal(f"experiment={row}") is None


def test_heads_without_content_attend_by_position_alone():
    network = gsa.create_model("digits_gsa").eval()
    x = torch.rand(3, 1, 12, 12)
    for layer in network.modules():
        if isinstance(layer, gsa.nn.SelfAttention):
            torch.nn.init.normal_(layer.out.weight)
    before = network(x)
    assert content.without_content(network) == 4
    after = network(x)
    assert (after - before).abs().max() > 1e-4
    maps = [layer for layer in network.modules() if isinstance(layer, gsa.nn.SelfAttention) and layer.content_heads]
    for layer in maps:
        one, other = (layer.attention(torch.randn(2, layer.in_channels, 4, 3, 3)) for _ in range(2))
        torch.testing.assert_close(one, other)
