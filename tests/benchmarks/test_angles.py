"""Runs are told apart by the validation digits of one generated split, at other angles."""

import json
import sys

import angles
import pytest
import torch


def test_digits_at_other_angles_are_those_of_one_generated_split(tmp_path):
    def run(name, **changes):
        (tmp_path / name).mkdir()
        data = {"_target_": "gsa.data.RotMNISTDataModule", "root": str(tmp_path), "source": "mnist"} | changes
        (tmp_path / name / "config.yaml").write_text(json.dumps({"data": data}))
        return tmp_path / name

    for wrong in (run("official", source="official"), run("cluttered", clutter=3)):
        with pytest.raises(ValueError, match="runs on turned MNIST"):
            angles.digits([run(f"good beside {wrong.name}"), wrong], 1)
    with pytest.raises(ValueError, match="runs on one split"):
        angles.digits([run("first"), run("second", split_seed=1)], 1)


def test_the_test_digits_are_those_of_the_split(tmp_path, monkeypatch):
    """Planted: digits that say where they stand."""
    whole = torch.arange(62_000).view(-1, 1, 1, 1), torch.arange(62_000)
    monkeypatch.setattr(angles, "turned_mnist", lambda root, seed, **other: whole)
    (tmp_path / "config.yaml").write_text(
        json.dumps({"data": {"_target_": "gsa.data.RotMNISTDataModule", "root": "x", "source": "mnist"}})
    )
    (pictures,), labels = angles.digits([tmp_path], None)
    assert pictures.flatten().tolist() == labels.tolist() == list(range(12_000, 62_000))
    (pictures,), labels = angles.digits([tmp_path], 1)
    assert pictures.flatten().tolist() == labels.tolist() == list(range(10_000, 12_000))


def test_accuracy_is_over_all_angles():
    labels = torch.tensor([0, 1])
    right, half = torch.eye(2), torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    assert angles.accuracy([right, half], labels) == 75


def test_no_angle_at_all_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["angles.py", "somewhere", "--angles", "0"])
    with pytest.raises(SystemExit):
        angles.main()
    assert "--angles must be at least 1, but got 0" in capsys.readouterr().err
