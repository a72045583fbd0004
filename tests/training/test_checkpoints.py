"""No checkpoint runs code, none is written by halves, and damage is named."""

import os
import pickle

import pytest
import torch

from gsa.training import SafeCheckpointIO, read_checkpoint, train

GOOD = {"state_dict": {"w": torch.arange(1000.0)}, "epoch": 3, "hyper_parameters": {"run": {"seed": 0}}}


class Canary:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def poisoned(where, canary):
    return {
        "whole": lambda: Canary(canary),
        "weights": lambda: {**GOOD, "state_dict": {"w": Canary(canary)}},
        "hyperparameters": lambda: {**GOOD, "hyper_parameters": {"optimizer": Canary(canary)}},
        "rng": lambda: {**GOOD, "rng": [Canary(canary)]},
    }[where]()


@pytest.mark.parametrize("where", ["whole", "weights", "hyperparameters", "rng"])
@pytest.mark.parametrize("plain_pickle", [False, True])
def test_a_checkpoint_with_code_is_refused_in_training_and_testing(small, tmp_path, where, plain_pickle):
    canary, file = tmp_path / "canary", tmp_path / "bad.ckpt"
    if plain_pickle:
        file.write_bytes(pickle.dumps(poisoned(where, canary)))
    else:
        torch.save(poisoned(where, canary), file)
    with pytest.raises(ValueError, match="bad.ckpt (holds more than|is not a whole)"):
        read_checkpoint(file)
    for overrides in (["train=true"], ["train=false"]):
        with pytest.raises(ValueError, match="bad.ckpt"):
            train(small(*overrides, f"ckpt_path='{file}'"))
    assert not canary.exists()
    if plain_pickle:
        pickle.loads(file.read_bytes())
    else:
        torch.load(file, weights_only=False)
    assert canary.exists()  # the plant: read trustingly, it does run


def test_what_is_written_is_what_is_read(tmp_path):
    file = tmp_path / "folder" / "a.ckpt"
    SafeCheckpointIO().save_checkpoint(GOOD, file)
    read = SafeCheckpointIO().load_checkpoint(file, weights_only=False)  # not even when it is asked to
    assert torch.equal(read["state_dict"]["w"], GOOD["state_dict"]["w"]) and read["epoch"] == 3
    assert [f.name for f in file.parent.iterdir()] == ["a.ckpt"]


def test_a_failed_save_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    file = tmp_path / "a.ckpt"
    SafeCheckpointIO().save_checkpoint(GOOD, file)
    before = file.read_bytes()

    def full(checkpoint, stream):
        stream.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match="No space left"):
        SafeCheckpointIO().save_checkpoint(GOOD, file)
    assert file.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("keep", [0, 10, 500, 3000])
def test_a_cut_checkpoint_is_named(tmp_path, keep):
    file = tmp_path / "a.ckpt"
    torch.save(GOOD, file)
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ValueError, match="a.ckpt"):
        read_checkpoint(file)


def test_other_files_are_not_checkpoints(tmp_path):
    file = tmp_path / "a.ckpt"
    torch.save({"weights": torch.zeros(1)}, file)
    with pytest.raises(ValueError, match="has no state_dict"):
        read_checkpoint(file)
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        read_checkpoint(tmp_path / "b.ckpt")


def test_the_checkpoints_of_a_run_hold_plain_values_only(small, tmp_path):
    train(small("ema=0.9"))
    for name in ("best", "last"):
        checkpoint = read_checkpoint(tmp_path / "run" / "checkpoints" / f"{name}.ckpt")
        assert checkpoint["hyper_parameters"]["run"]["model"]["name"] == "digits_z2_sa"
