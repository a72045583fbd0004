"""A folder without a run is told from none, and the run below it is named."""

import os

import pytest

import gsa
from gsa.saved._run_folder import checkpoint_of


def write(path, age):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    os.utime(path, (10**9 - age, 10**9 - age))


def test_the_best_weights_of_a_run_come_first(tmp_path):
    write(tmp_path / "checkpoints" / "last.ckpt", 0)
    assert checkpoint_of(tmp_path).name == "last.ckpt"
    write(tmp_path / "checkpoints" / "best.ckpt", 9)
    assert checkpoint_of(tmp_path).name == "best.ckpt"


def test_the_newest_run_below_is_meant(tmp_path):
    """Planted: an older one, and one that lies too deep to be looked for."""
    for run, age in (("digits/old", 5), ("digits/gsa/2026-11-26_17.30", 3), ("a/b/c/d/e", 1)):
        write(tmp_path / run / "checkpoints" / "last.ckpt", age)
    with pytest.raises(FileNotFoundError, match=r"no run in the folder .*; did you mean .*/gsa/2026-11-26_17.30\?$"):
        gsa.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"did you mean .*/old/checkpoints/last.ckpt\?$"):
        gsa.load(tmp_path / "digits" / "old" / "checkpoints")


def test_a_folder_without_runs_is_no_missing_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no run in the folder .*: expected checkpoints/best.ckpt .* in it$"):
        gsa.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder .*/none: expected"):
        gsa.load(tmp_path / "none" / "2026-11-26_17.30")
