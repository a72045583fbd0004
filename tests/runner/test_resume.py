"""Runs go on where they stood, as they began, one process in a folder."""

import json
import os
import signal
from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch.callbacks import timer

import gsa
from gsa.runner import ConfigError, build, train
from gsa.runner._config_file import read_config
from gsa.runner._resume import finished_report
from gsa.saved import export, read
from gsa.training import Stopped
from tests.runner.faults import act_in
from tests.runner.test_run import DROPOUT


def test_auto_starts_resumes_and_skips(small, tmp_path, capsys):
    options = (*DROPOUT, "trainer.max_epochs=2", "ckpt_path=auto")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        act_in(patch, 1, 0, lambda module: os.kill(os.getpid(), signal.SIGTERM))
        train(small(*options))
    assert "starting anew" in capsys.readouterr().out
    metrics, _ = train(small(*options))
    assert "going on from" in capsys.readouterr().out
    checkpoint = tmp_path / "run" / "checkpoints" / "last.ckpt"
    written = checkpoint.stat().st_mtime_ns
    again, objects = train(small(*options))
    assert "finished already" in capsys.readouterr().out and again == metrics
    assert checkpoint.stat().st_mtime_ns == written and objects["report"]["epochs"] == 2
    longer = r"values of trainer.max_epochs \(2 there\): .* another folder \(.*\), or go on .* ckpt_path=.*last.ckpt"
    with pytest.raises(ValueError, match=longer):
        train(small(*DROPOUT, "trainer.max_epochs=3", "ckpt_path=auto"))
    with pytest.raises(
        ValueError, match=r"values of optimizer.lr \(0.\d+ there\): give .*, or choose another folder \([^)]*\)$"
    ):
        train(small(*options, "optimizer.lr=0.5"))


def test_a_best_epoch_that_is_lost_is_told_of_before_more_is_trained(small, tmp_path):
    best = tmp_path / "run" / "checkpoints" / "best.ckpt"
    train(small("trainer.max_epochs=2", "scheduler=constant"))
    longer = small("trainer.max_epochs=3", "scheduler=constant", f"ckpt_path={best.with_name('last.ckpt')}")
    whole = best.read_bytes()
    best.write_bytes(whole[:999] + bytes([whole[999] ^ 1]) + whole[1000:])
    with pytest.raises(ConfigError, match=r"remembers \(val/accuracy 0.*its content has"):
        train(longer)
    best.write_bytes(whole)
    train(longer)
    best.unlink()
    longer.trainer.max_epochs = 4
    with pytest.warns(UserWarning, match=r"remembers \(val/accuracy 0.* is not in .*: of the epochs from here"):
        _, objects = train(longer)
    assert objects["report"]["best_epoch"] == 3


def test_auto_passes_over_damage_and_says_so(small, tmp_path, capsys):
    options = ("trainer.max_epochs=2", "ckpt_path=auto")
    train(small(*options))
    folder = tmp_path / "run"
    (folder / "report.json").unlink()
    last = folder / "checkpoints" / "last.ckpt"
    last.write_bytes(last.read_bytes()[:-1000])
    train(small(*options))
    text = capsys.readouterr().out
    assert "passed over" in text and "last.ckpt is not a whole checkpoint" in text and "going on from" in text
    assert json.loads((folder / "report.json").read_text())["epochs"] == 2


def test_auto_does_not_begin_anew_over_damage(small, tmp_path):
    train(small("trainer.max_epochs=1"))
    (tmp_path / "run" / "report.json").unlink()
    for file in (tmp_path / "run" / "checkpoints").iterdir():
        file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(ConfigError, match="no checkpoint of the run in .* is whole"):
        train(small("trainer.max_epochs=1", "ckpt_path=auto"))


def test_a_folder_and_an_export_are_no_checkpoints_but_say_what_is(small, tmp_path):
    _, objects = train(small("trainer.max_epochs=1"))
    folder, exported = objects["folder"], tmp_path / "exported"
    export(read(folder), exported)
    for more, name in ((), "last"), (("train=false",), "best"):
        with pytest.raises(ConfigError, match=f"set ckpt_path={folder}/checkpoints/{name}.ckpt"):
            build(small(f"ckpt_path={folder}", *more))
    for path in exported, exported / "model.safetensors":
        with pytest.raises(ConfigError, match="is an export, of weights only; in Python") as refused:
            build(small(f"ckpt_path={path}"))
    said = {"gsa": gsa, "config": small("trainer.max_epochs=1", "optimizer.lr=0", "ema=null", folder="second")}
    exec(str(refused.value).partition("begins with them: ")[2], said)
    expected = gsa.load(exported).state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in said["run"].network.named_parameters())
    assert (tmp_path / "second" / "report.json").is_file()


def test_a_run_that_goes_on_has_no_report_until_it_ends(small, tmp_path):
    train(small("scheduler=constant", "trainer.max_epochs=1"))
    longer = ("scheduler=constant", "trainer.max_epochs=2", f"ckpt_path='{tmp_path}/run/checkpoints/last.ckpt'")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyError):
        act_in(patch, 1, 1, lambda module: {}["planted"])
        train(small(*longer))
    assert not (tmp_path / "run" / "report.json").exists()
    assert read_config(tmp_path / "run" / "config.yaml").trainer.max_epochs == 2


def test_a_resumption_that_cannot_be_leaves_the_run_as_it_was(small, tmp_path):
    """Fewer epochs than there are; and whatever Lightning makes of a checkpoint."""
    folder, last = tmp_path / "run", tmp_path / "run" / "checkpoints" / "last.ckpt"
    train(small("scheduler=constant"))
    before = [(folder / name).read_bytes() for name in ("config.yaml", "report.json")]
    with pytest.raises(ConfigError, match="max_epochs must be at least the 2 epochs that .* has begun, but got 1"):
        train(small("scheduler=constant", "trainer.max_epochs=1", f"ckpt_path='{last}'"))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyError):
        patch.setattr("gsa.training.Classifier.on_load_checkpoint", lambda *_: {}["planted"])
        train(small("scheduler=constant", "trainer.max_epochs=3", f"ckpt_path='{last}'"))
    assert [(folder / name).read_bytes() for name in ("config.yaml", "report.json")] == before
    assert finished_report(small("scheduler=constant", "ckpt_path=auto")) is not None


def test_a_run_that_time_has_ended_goes_on_with_more_and_ends_as_one_that_had_it(small, tmp_path, monkeypatch, capsys):
    """Every look at the clock takes a minute: at the end of an epoch, never within one."""
    passed = iter(range(0, 10_000_000, 60))
    monkeypatch.setattr(timer, "time", SimpleNamespace(monotonic=lambda: next(passed)))
    limited = "ckpt_path=auto", "trainer.max_epochs=3", "trainer.limit_train_batches=9"
    _, first = train(small(*limited, "+trainer.max_time=00:00:00:30"))
    assert first["report"]["epochs"] == 1
    assert train(small(*limited, "+trainer.max_time=00:00:00:30"))[1].keys() == {"report", "folder"}  # finished
    _, last = train(small(*limited))
    assert last["report"]["epochs"] == 3 and "going on from" in capsys.readouterr().out
    assert train(small(*limited, "+trainer.max_time=00:00:00:30"))[1]["report"] == last["report"]  # was finished
    _, whole = train(small(*limited, folder="whole"))
    found, expected = (objects["network"].state_dict() for objects in (last, whole))
    assert all(torch.equal(found[name], value) for name, value in expected.items())
