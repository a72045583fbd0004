"""Which pictures a run has trained on, and what it said of each of the test."""

import csv
from types import SimpleNamespace

import torch

from gsa import viz
from gsa.report._description import _found
from gsa.runner import train
from gsa.training import Examination
from tests.data.test_image_folder import write_pictures


def rows(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def test_pictures_in_folders_are_called_by_their_files(small, tmp_path, monkeypatch):
    captions = []
    draw = viz.draw_mistakes
    monkeypatch.setattr(viz, "draw_mistakes", lambda pictures, found: captions.extend(found) or draw(pictures, found))
    write_pictures(tmp_path, parts=("cells",), classes=("rund", "längs"), count=20)
    folder = tmp_path / "cells"
    options = ("report=true", "data=imagefolder", f"data.root='{folder}'", "data.size=8", "data.batch_size=4",
               "model=digits_z2_sa", "trainer.max_epochs=1", "optimizer.lr=1e-9")  # fmt: skip
    _, objects = train(small(*options))
    parts, answers = rows(tmp_path / "run" / "parts.csv"), rows(tmp_path / "run" / "test.csv")
    assert sorted(row["path"] for row in parts) == sorted(map(str, folder.rglob("*.jpg")))
    assert all(row["path"].startswith(str(folder / row["class"])) for row in (*parts, *answers))
    assert {part: sum(row["part"] == part for row in parts) for part in ("train", "val", "test")} == objects["report"][
        "split"
    ]
    assert [row["path"] for row in answers] == [row["path"] for row in parts if row["part"] == "test"]
    right = [row["class"] == row["prediction"] for row in answers]
    assert sum(right) / len(right) == objects["report"]["test_accuracy"]
    assert all(max(("rund", "längs"), key=lambda name: float(row[name])) == row["prediction"] for row in answers)
    wrong = {row["path"].rsplit("/")[-1] for row in answers if row["class"] != row["prediction"]}
    assert wrong and {caption.splitlines()[-1] for caption in captions} == wrong


def test_other_pictures_have_their_number(small, tmp_path):
    train(small("trainer.limit_test_batches=2"))
    answers = rows(tmp_path / "run" / "test.csv")
    assert [row["index"] for row in answers] == [str(index) for index in range(200)]
    assert not (tmp_path / "run" / "parts.csv").exists()


def test_rows_of_a_confusion_are_true_classes():
    """Two pictures of a, one of which was found, and one of b, which was."""
    record = Examination(2)
    record.update(torch.zeros(3, 1, 2, 2), torch.tensor([[2.0, 0], [0, 2.0], [0, 2.0]]), torch.tensor([0, 0, 1]))
    test = SimpleNamespace(files=None)
    run = SimpleNamespace(data=SimpleNamespace(classes=["a", "b"], group_of={}, parts={"test": test}))
    found = _found(run, record.result())
    assert found["confusion"] == {"classes": ["a", "b"], "counts": [[1, 1], [0, 1]]}
    assert found["class_accuracy"] == {"a": 0.5, "b": 1.0}
