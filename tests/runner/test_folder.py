"""The folder of a run is that of one run, and of one process, wherever it is moved."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gsa.runner import ConfigError, train
from gsa.runner._folder import TakenAway, held
from gsa.training import Stopped
from tests.runner.faults import act_in
from tests.runner.test_run import DROPOUT, outcome


def test_a_run_whose_folder_is_taken_away_writes_nothing_into_that_of_the_next(small, tmp_path):
    folder = tmp_path / "run"

    def replace(module):
        shutil.rmtree(folder)
        (folder / "checkpoints").mkdir(parents=True)

    for part, epochs in (("training", 2), ("test", 1)):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(TakenAway, match="removed, moved or replaced"):
            act_in(patch, 1, 0, replace, part)
            train(small(f"trainer.max_epochs={epochs}"))
        assert [*folder.rglob("*")] == [folder / "checkpoints"]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(TakenAway):
        act_in(patch, 1, 0, lambda module: folder.rename(tmp_path / "moved"))
        train(small("trainer.max_epochs=2"))
    assert not folder.exists() and (tmp_path / "moved" / "checkpoints" / "last.ckpt").exists()


@pytest.mark.parametrize("file", ["report.json", "checkpoints/last.ckpt"])
def test_a_run_takes_the_place_of_no_other(small, tmp_path, file):
    """Neither a new one, nor one that goes on from elsewhere, nor a test; only tests may be made again."""
    train(small("trainer.max_epochs=1", folder="first"))
    last, taken = tmp_path / "first" / "checkpoints" / "last.ckpt", tmp_path / "run" / file
    taken.parent.mkdir(parents=True)
    shutil.copy(tmp_path / "first" / file, taken)
    for options in (["seed=5"], [f"ckpt_path='{last}'"]):
        with pytest.raises(ConfigError, match=r"run holds a run already: ckpt_path=auto goes on with it, or choose an"):
            train(small(*options))
    with pytest.raises(ConfigError, match=r"run holds a run already: choose another folder \(output_dir\)"):
        train(small("train=false", f"ckpt_path='{last}'"))
    for _ in range(2):
        train(small("train=false", f"ckpt_path='{last}'", folder="tested"))


def test_a_folder_that_has_moved_is_still_the_same_run(small, tmp_path, capsys):
    train(small("trainer.max_epochs=1"))
    (tmp_path / "run").rename(tmp_path / "moved")
    train(small("trainer.max_epochs=1", "ckpt_path=auto", folder="moved"))
    assert "finished already" in capsys.readouterr().out


@pytest.mark.parametrize(
    "how", ["moved", *(pytest.param(how, marks=pytest.mark.slow) for how in ("copied", "elsewhere"))]
)
def test_a_run_goes_on_in_another_folder(small, tmp_path, how):
    """The best epoch is one of before the move, as no later one is validated on anything that it gets right."""
    options = (*DROPOUT, "trainer.max_epochs=3")
    whole = train(small(*options, folder="whole"))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        act_in(patch, 2, 1, lambda module: os.kill(os.getpid(), signal.SIGTERM))
        train(small(*options))
    old, new = tmp_path / "run", tmp_path / "new"
    last = old / "checkpoints" / "last.ckpt"
    if how != "elsewhere":
        shutil.copytree(old, new)
        last = new / "checkpoints" / "last.ckpt"
    if how == "moved":
        shutil.rmtree(old)
    metrics, objects = train(small(*options, f"ckpt_path='{last}'", folder="new"))
    assert metrics == whole[0] and outcome(objects)[1] == outcome(whole[1])[1]
    best = objects["trainer"].checkpoint_callbacks[0]
    assert best.monitor and Path(best.best_model_path) == new / "checkpoints" / "best.ckpt"
    if how != "moved":
        assert (old / "checkpoints" / "best.ckpt").exists()


def test_what_a_killed_process_was_writing_is_taken_away(tmp_path):
    left = [tmp_path / ".report.json.1.part", tmp_path / "checkpoints" / ".last.ckpt.1.part"]
    left[1].parent.mkdir()
    for file in left:
        file.touch()
    with held(tmp_path):
        assert not any(file.exists() for file in left)


def test_one_process_works_in_a_folder(small, tmp_path):
    """Planted: once the owner has died, although what it has started lives on."""
    (tmp_path / "run").mkdir()
    owner = subprocess.Popen(
        [sys.executable, "-c", "import os, sys, time; from pathlib import Path; from gsa.runner._folder import held\n"
         "with held(Path(sys.argv[1])):\n os.fork() and print('held', flush=True); time.sleep(60)", tmp_path / "run"],
        stdout=subprocess.PIPE, process_group=0,
    )  # fmt: skip
    try:
        assert owner.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match=rf"another process \({owner.pid} on .*\) is at work on the run in .*run"):
            train(small("trainer.max_epochs=1"))
        owner.kill()
        owner.wait()
        train(small("trainer.max_epochs=1"))
    finally:
        os.killpg(owner.pid, signal.SIGKILL)
        owner.wait()
        owner.stdout.close()
