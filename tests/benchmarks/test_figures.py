"""Figures are made of the runs that are there, and of what is recorded."""

from types import SimpleNamespace

import accuracy
import figures
import pytest

from tests.benchmarks.test_accuracy import write_accuracy_report


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
