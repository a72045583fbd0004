"""Runs outlive signals, skip steps that are not finite, and go on where they stood."""

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

import gsa
from gsa.runner import ConfigError, train
from gsa.runner._resume import finished_report
from gsa.saved import first_not_finite, read_checkpoint
from gsa.training import NotFinite, Stopped
from tests.runner.test_run import DROPOUT, outcome

ROOT = Path(gsa.__file__).parent.parent


def act_in(patch, epoch, index, action, part="training"):
    """Do something once while a run is in the midst of a step."""
    ours = getattr(gsa.training.Classifier, f"{part}_step")

    def step(module, batch, batch_index):
        place = (module.trainer.current_epoch, batch_index)
        if place == (epoch, index) and not module.trainer.sanity_checking:
            patch.undo()
            action(module)
        return ours(module, batch, batch_index)

    patch.setattr(f"gsa.training.Classifier.{part}_step", step)


HALVES = ("trainer.accumulate_grad_batches=2",)


# When it is told (part, epoch, batch), the steps it then saves after, other options, and by which signal.
@pytest.mark.parametrize("part, epoch, index, steps, extra, number", [
    ("training", 1, 1, 6, (), signal.SIGINT),
    ("training", 1, 1, 6, ("data.num_workers=2",), signal.SIGTERM),
    ("training", 1, 0, 3, HALVES, signal.SIGTERM),  # with the second half of the step
    ("training", 0, 3, 4, (), signal.SIGTERM),  # the last batch: after the validation
    ("training", 0, 0, 1, ("trainer.limit_train_batches=1",), signal.SIGTERM),  # a single batch an epoch
    ("validation", 0, 1, 4, ("data.num_workers=2",), signal.SIGINT),
    ("validation", 1, 1, 8, (), signal.SIGTERM),  # of the last epoch
])  # fmt: skip
def test_a_run_that_is_told_to_stop_saves_and_is_resumed(small, part, epoch, index, steps, extra, number):
    options = (*DROPOUT, "trainer.max_epochs=2", "trainer.limit_train_batches=4", "data.augmentation=[turns]", *extra)
    start = time.monotonic()
    weights, rows, accuracy = outcome(train(small(*options, folder="whole"))[1])
    before = signal.getsignal(number)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped) as stopped:
        act_in(patch, epoch, index, lambda module: os.kill(os.getpid(), number), part)
        train(small(*options, folder="parts"))
    assert stopped.value.code == 128 + number and signal.getsignal(number) == before
    last = stopped.value.checkpoint
    assert read_checkpoint(last)["global_step"] == steps
    torch.manual_seed(99)
    _, resumed_run = train(small(*options, f"ckpt_path='{last}'", folder="parts"))
    resumed, rows_too, accuracy_too = outcome(resumed_run)
    assert [name for name in weights if not torch.equal(resumed[name], weights[name])] == []
    assert accuracy_too == accuracy
    assert rows_too == rows  # train metrics are those of the whole epoch that was cut in two
    assert 0 < resumed_run["report"]["train_seconds"] < time.monotonic() - start


# Where a run is told to stop, whether a checkpoint of it is on disk then, and by which signal.
@pytest.mark.parametrize("place, saved, number", [
    ("gsa.data.PictureDataModule.setup", False, signal.SIGTERM),
    ("gsa.training.Classifier.validation_step", False, signal.SIGTERM),  # the sanity check
    ("gsa.training.Classifier.test_step", True, signal.SIGINT),
    ("gsa.runner._run.describe", True, signal.SIGTERM),
])  # fmt: skip
def test_a_run_may_be_told_to_stop_at_any_place(small, place, saved, number):
    options = (*DROPOUT, "+trainer.num_sanity_val_steps=1")
    whole = outcome(train(small(*options, folder="whole"))[1])
    before = signal.getsignal(number)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped) as stopped:
        patch.setattr(place, lambda *_, **__: signal.raise_signal(number))
        train(small(*options, folder="parts"))
    assert stopped.value.code == 128 + number and signal.getsignal(number) == before
    assert (stopped.value.checkpoint is not None) == saved
    assert not (Path(small(folder="parts").output_dir) / "report.json").exists()
    weights, rows, accuracy = outcome(train(small(*options, "ckpt_path=auto", folder="parts"))[1])
    assert (rows, accuracy) == whole[1:] and all(torch.equal(weights[name], whole[0][name]) for name in weights)


def test_the_command_ends_with_the_code_of_the_signal(tmp_path):
    command = [sys.executable, str(ROOT / "train.py"), "model=digits_z2_sa", "callbacks=quiet", "report=false",
               "trainer.accelerator=cpu", f"hydra.run.dir={tmp_path / 'run'}"]  # fmt: skip
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while not (tmp_path / "run" / "checkpoints" / "last.ckpt").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    text = process.communicate()[0].decode()
    assert process.returncode == 143
    assert "stopped by SIGTERM; the same command goes on with  ckpt_path=" in text and "Traceback" not in text


def test_a_second_signal_ends_the_run_at_once(small, tmp_path):
    def interrupt_twice(module):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped, match="SIGINT before anything was saved"):
        act_in(patch, 0, 1, interrupt_twice)
        train(small("trainer.max_epochs=1"))
    assert signal.getsignal(signal.SIGINT) == before
    assert not (tmp_path / "run" / "checkpoints" / "last.ckpt").exists()  # it did not wait for the step


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_steps_that_are_not_finite_are_left_out_and_end_the_run(small, tmp_path, value):
    config = small("trainer.max_epochs=3", "trainer.limit_train_batches=6")
    seen = []

    def backward(module, loss):
        if module.trainer.current_epoch == 1:
            loss = loss * value
            seen.append([p.detach().clone() for p in module.parameters()])
        loss.backward()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gsa.training.Classifier.backward", backward)
        with pytest.raises(NotFinite, match="3 steps in a row were not finite, .* of epoch 1: the gradient of network"):
            train(config)
    assert len(seen) == 3 and all(torch.equal(a, b) for a, b in zip(seen[0], seen[2], strict=True))
    for name in ("best", "last"):
        state = read_checkpoint(tmp_path / "run" / "checkpoints" / f"{name}.ckpt")["state_dict"]
        assert all(value.isfinite().all() for value in state.values())


def test_an_infinite_loss_is_left_out_although_its_gradients_are_finite(small):
    ours = gsa.training.Classifier.training_step
    with pytest.MonkeyPatch.context() as patch, pytest.raises(NotFinite, match="of epoch 0"):
        patch.setattr("gsa.training.Classifier.training_step", lambda *a: ours(*a) + float("inf"))
        train(small("trainer.max_epochs=1", "trainer.limit_train_batches=4"))


def test_a_single_step_that_is_not_finite_does_not_end_the_run(small):
    def backward(module, loss):
        (loss * float("nan") if module.trainer.global_step == 1 and not done else loss).backward()
        done.append(module.trainer.global_step == 1)

    done = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gsa.training.Classifier.backward", backward)
        _, objects = train(small("trainer.max_epochs=1", "trainer.limit_train_batches=4"))
    assert all(p.isfinite().all() for p in objects["network"].parameters())


def test_the_first_bad_module_is_named(small):
    def spoil(module):
        torch.nn.init.constant_(module.network.lifting.query.weight if hasattr(module.network.lifting, "query")
                                else next(module.network.lifting.parameters()), float("nan"))  # fmt: skip

    with pytest.MonkeyPatch.context() as patch, pytest.raises(NotFinite, match=r"the output of lifting"):
        act_in(patch, 0, 1, spoil)
        train(small("trainer.max_epochs=1", "trainer.limit_train_batches=6"))


@pytest.mark.parametrize("callbacks", ["quiet", "none"])
def test_what_is_not_finite_is_neither_saved_nor_a_success(small, tmp_path, callbacks):
    def overflow(module):
        next(m for m in module.network.modules() if isinstance(m, torch.nn.BatchNorm3d)).running_var.fill_(math.inf)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(NotFinite, match=r"running_var is not finite after step"):
        act_in(patch, 1, 3, overflow)
        train(small("model.norm=batch", "ema=null", f"callbacks={callbacks}"))
    for file in (tmp_path / "run" / "checkpoints").glob("*.ckpt"):
        assert first_not_finite(read_checkpoint(file)["state_dict"]) is None
    assert not (tmp_path / "run" / "report.json").exists()


@pytest.mark.parametrize("place", ["draw_gallery", pytest.param("write_report", marks=pytest.mark.slow)])
def test_a_full_disk_at_the_end_loses_nothing(small, place):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    whole = outcome(train(small("report=true", folder="whole"))[1])
    with pytest.MonkeyPatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(f"gsa.runner._run.{place}", full)
        train(small("report=true"))
    weights, *rest = outcome(train(small("report=true", "ckpt_path=auto"))[1])
    assert rest == list(whole[1:]) and all(torch.equal(weights[name], whole[0][name]) for name in weights)


def test_one_process_works_in_a_folder(small, tmp_path):
    """Planted: once the owner has died, although what it has started lives on."""
    (tmp_path / "run").mkdir()
    owner = subprocess.Popen(
        [sys.executable, "-c", "import os, sys, time; from pathlib import Path; from gsa.runner._folder import held\n"
         "with held(Path(sys.argv[1])):\n os.fork(); print('held', flush=True); time.sleep(60)", tmp_path / "run"],
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
        owner.stdout.close()


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
    with pytest.raises(ValueError, match=r"other values of trainer.max_epochs: choose another folder"):
        train(small(*DROPOUT, "trainer.max_epochs=3", "ckpt_path=auto"))


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


@pytest.mark.parametrize("field, value", [("group", "Z2M"), ("num_heads", 2), ("neighbourhood", 5), ("form", "summed")])
@pytest.mark.parametrize("training", [True, False])
def test_a_checkpoint_of_another_network_is_refused_by_its_fields(small, tmp_path, field, value, training):
    train(small("trainer.max_epochs=1", folder="first"))
    path = tmp_path / "first" / "checkpoints" / "last.ckpt"
    with pytest.raises(ValueError, match=rf"another network; .* {field} \(.* there, {value!r} here\)"):
        train(small(f"model.{field}={value}", f"ckpt_path='{path}'", f"train={training}".lower(), folder="second"))


def test_a_folder_that_cannot_be_written_is_refused_before_the_first_step(small, tmp_path):
    (tmp_path / "run").write_text("a file where the folder should be")
    with pytest.raises(ValueError, match="output_dir must be a folder that can be written, but"):
        train(small())


class Dies(torch.utils.data.Dataset):
    """A worker that is killed while it loads."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        if torch.utils.data.get_worker_info() is not None and index == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.dataset[index]


def test_a_worker_that_dies_ends_the_run(small, monkeypatch):
    load = gsa.data.DigitsDataModule.load
    monkeypatch.setattr(gsa.data.DigitsDataModule, "load", lambda m: {k: Dies(v) for k, v in load(m).items()})
    with pytest.raises(RuntimeError, match="DataLoader worker .* (killed|exited)"):
        train(small("data.num_workers=1", batches=75))


def test_a_forward_pass_that_is_not_finite_leaves_no_trace_in_batch_norms(small):
    """Planted failure: without the statistics put back, they stay NaN for ever."""

    def spoil_once(module):
        hook = module.network.lifting.register_forward_hook(lambda *args: hook.remove() or args[2] * float("nan"))

    options = ("model.norm=batch", "trainer.max_epochs=1", "trainer.limit_train_batches=4")
    with pytest.MonkeyPatch.context() as patch:
        act_in(patch, 0, 1, spoil_once)
        _, objects = train(small(*options))
    state = objects["network"].state_dict()
    assert any("running_var" in name for name in state)
    assert all(value.isfinite().all() for value in state.values())


def test_auto_refuses_the_checkpoint_of_another_run(small, tmp_path):
    train(small("trainer.max_epochs=1"))
    with pytest.raises(ConfigError, match=r"other values of optimizer\.lr"):
        train(small("trainer.max_epochs=1", "optimizer.lr=0.5", "ckpt_path=auto"))
    (tmp_path / "run" / "report.json").unlink()  # it had not finished
    (tmp_path / "run" / "config.yaml").unlink()
    with pytest.raises(ConfigError, match=r"other values of data.seed, seed"):
        train(small("trainer.max_epochs=1", "seed=3", "ckpt_path=auto"))


def test_auto_does_not_take_the_report_of_the_run_before(small, tmp_path):
    train(small("trainer.max_epochs=1"))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyError):
        act_in(patch, 0, 1, lambda module: {}["planted"])
        train(small("trainer.max_epochs=1", "seed=3"))
    assert not (tmp_path / "run" / "report.json").exists()


def test_a_folder_that_has_moved_is_still_the_same_run(small, tmp_path, capsys):
    train(small("trainer.max_epochs=1"))
    (tmp_path / "run").rename(tmp_path / "moved")
    train(small("trainer.max_epochs=1", "ckpt_path=auto", folder="moved"))
    assert "finished already" in capsys.readouterr().out


@pytest.mark.parametrize("how", ["moved", "copied", "elsewhere"])
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


@pytest.mark.parametrize("changed, key", [
    ("seed=3", "seed"), ("optimizer.lr=0.5", "optimizer.lr"), ("ema=null", "ema"),
    ("data.batch_size=8", "data.batch_size"),
])  # fmt: skip
def test_a_run_goes_on_as_it_began_or_not_at_all(small, tmp_path, changed, key):
    train(small("trainer.max_epochs=1"))
    last = tmp_path / "run" / "checkpoints" / "last.ckpt"
    with pytest.raises(ConfigError, match=rf"trained with other values: .*{key} \("):
        train(small("trainer.max_epochs=1", f"ckpt_path='{last}'", changed))
    train(small("trainer.max_epochs=3", f"ckpt_path='{last}'", "train=false", changed))  # testing changes nothing


REPORT = {"val_accuracy": 0.5, "test_accuracy": None}  # without a digest, as earlier versions have written it


@pytest.mark.parametrize("changed", [
    "data.num_workers=1", "data.root=elsewhere", "objective=test/accuracy", "trainer.enable_progress_bar=true",
    "logger=csv", "data.eval_batch_size=7",
])  # fmt: skip
def test_auto_goes_on_whatever_changes_neither_weights_nor_metrics(configure, tmp_path, changed):
    """Planted: a key that does change them."""
    (tmp_path / "run").mkdir()
    config = configure("model=rotmnist_z2_sa", "ckpt_path=auto")
    (tmp_path / "run" / "config.yaml").write_text(OmegaConf.to_yaml(config, resolve=True))
    (tmp_path / "run" / "report.json").write_text(json.dumps(REPORT))
    assert finished_report(configure("model=rotmnist_z2_sa", "ckpt_path=auto", changed)) == REPORT
    with pytest.raises(ConfigError, match=r"data\.split_seed"):
        finished_report(configure("model=rotmnist_z2_sa", "ckpt_path=auto", "data.split_seed=3"))
