"""No checkpoint runs code, none is written by halves, and damage is named."""

import errno
import hashlib
import io
import os
import pickle
import random
import shutil
from types import SimpleNamespace

import pytest
import torch

from gsa.files import remove_leftovers
from gsa.runner import train
from gsa.saved import _checkpoint, newest_checkpoint, read_checkpoint, write_checkpoint
from gsa.training import SafeCheckpointIO
from tests.forks import python

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
        content = pickle.dumps(poisoned(where, canary))
    else:
        torch.save(poisoned(where, canary), stream := io.BytesIO())
        content = stream.getvalue()
    file.write_bytes(content + b"\nsha256:" + hashlib.sha256(content).hexdigest().encode())  # whole, and right
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


def test_it_is_read_back_once_for_every_kind_of_content(tmp_path, monkeypatch):
    """Planted: values of another kind, and code, each time."""
    read, plainly = [], _checkpoint._plain
    monkeypatch.setattr(_checkpoint, "_READ_AGAIN", set())
    monkeypatch.setattr(_checkpoint, "_plain", lambda *given: read.append(True) or plainly(*given))
    for epoch in range(3):
        write_checkpoint({**GOOD, "epoch": epoch, "state_dict": {"w": torch.rand(7)}}, tmp_path / "a.ckpt")
    assert len(read) == 1
    write_checkpoint({**GOOD, "state_dict": {"w": torch.rand(7).half()}}, tmp_path / "a.ckpt")
    assert len(read) == 2
    for count in (3, 4):
        with pytest.raises(ValueError, match="could not be read again"):
            write_checkpoint({**GOOD, "rng": Canary(tmp_path / "canary")}, tmp_path / "a.ckpt")
        assert len(read) == count and not (tmp_path / "canary").exists()


def test_a_full_disk_leaves_the_old_checkpoint_and_says_what_was_needed(tmp_path, monkeypatch):
    file = tmp_path / "a.ckpt"
    write_checkpoint(GOOD, file)
    before = file.read_bytes()

    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(total=9000, used=8000, free=1000))
    for number, how in ((errno.ENOSPC, "free some space"), (errno.EFBIG, r"look at .* \(ulimit -f, quota\)")):
        told = os.strerror(number)
        monkeypatch.setattr(os, "fsync", lambda handle, n=number, told=told: (_ for _ in ()).throw(OSError(n, told)))
        needed = f"{told}: {file} needs {len(before):,} bytes, 1,000 are free"
        with pytest.raises(OSError, match=f"{needed}; the previous one is as it was; {how}, and ckpt_path=auto"):
            write_checkpoint(GOOD, file)
    assert file.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("keep", [0, 10, 500, 3000])
def test_a_cut_checkpoint_is_named(tmp_path, keep):
    file = tmp_path / "a.ckpt"
    write_checkpoint(GOOD, file)
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ValueError, match="a.ckpt is not a whole checkpoint"):
        read_checkpoint(file)


def test_a_single_flipped_bit_anywhere_is_noticed_or_harmless(tmp_path):
    file = tmp_path / "a.ckpt"
    write_checkpoint(GOOD, file)
    whole, chance = file.read_bytes(), random.Random(0)
    for place in [*(chance.randrange(8 * len(whole)) for _ in range(200)), 8 * len(whole) - 3]:
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        file.write_bytes(bytes(damaged))
        with pytest.raises(ValueError, match="expected the digest [0-9a-f]+.*, but got [0-9a-f]{64}|its digest"):
            read_checkpoint(file)
    trusting = torch.load(io.BytesIO(bytes(whole[: whole.rindex(b"\nsha256:")])), weights_only=True)
    assert torch.equal(trusting["state_dict"]["w"], GOOD["state_dict"]["w"])
    flipped = bytearray(whole)
    flipped[whole.index(torch.arange(1000.0).numpy().tobytes()) + 2001] ^= 4
    read = torch.load(io.BytesIO(bytes(flipped)), weights_only=True)  # the plant: unnoticed without the digest
    assert not torch.equal(read["state_dict"]["w"], GOOD["state_dict"]["w"])


def test_a_kill_in_the_midst_of_saving_leaves_the_old_checkpoint(tmp_path):
    file = tmp_path / "a.ckpt"
    write_checkpoint(GOOD, file)
    script = (
        "import os, sys, torch\nfrom gsa.saved import write_checkpoint\n"
        "os.replace = lambda *_: os.kill(os.getpid(), 9)\n"
        "write_checkpoint({'state_dict': {}, 'epoch': 9}, sys.argv[1])"
    )
    done = python("-c", script, file)
    assert done.returncode == -9 and len(list(tmp_path.glob(".a.ckpt.*.part"))) == 1
    assert read_checkpoint(file)["epoch"] == 3
    write_checkpoint({**GOOD, "epoch": 4}, file)
    assert read_checkpoint(file)["epoch"] == 4
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.ckpt"]


def test_other_files_are_not_checkpoints(tmp_path):
    file = tmp_path / "a.ckpt"
    write_checkpoint({"weights": torch.zeros(1)}, file)
    with pytest.raises(ValueError, match="has no state_dict"):
        read_checkpoint(file)
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        read_checkpoint(tmp_path / "b.ckpt")


def test_the_checkpoints_of_a_run_hold_plain_values_only(small, tmp_path):
    train(small("ema=0.9"))
    for name in ("best", "last"):
        checkpoint = read_checkpoint(tmp_path / "run" / "checkpoints" / f"{name}.ckpt")
        assert checkpoint["hyper_parameters"]["run"]["model"]["name"] == "digits_z2_sa"


def test_the_newest_checkpoint_is_that_of_the_most_steps_and_the_last_of_two(tmp_path):
    for name, step in (("best", 20), ("last", 20), ("a", 9), ("z", 10)):
        write_checkpoint({"state_dict": {}, "global_step": step}, tmp_path / f"{name}.ckpt")
    assert newest_checkpoint(tmp_path) == (tmp_path / "last.ckpt", [])
    write_checkpoint({"state_dict": {}, "global_step": 30}, tmp_path / "a.ckpt")
    assert newest_checkpoint(tmp_path) == (tmp_path / "a.ckpt", [])
    (tmp_path / "a.ckpt").unlink()
    (tmp_path / "last.ckpt").unlink()
    assert newest_checkpoint(tmp_path) == (tmp_path / "best.ckpt", [])
