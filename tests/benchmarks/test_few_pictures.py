"""Accuracy from few pictures is measured with as many steps as from all."""

import shutil

import few_pictures
import pytest

from gsa.saved import write_checkpoint
from tests.benchmarks.test_table import write_report


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
