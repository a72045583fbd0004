"""Tables are made of the reports of runs."""

import json

import pytest
import ship
import table


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
