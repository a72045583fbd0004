"""Runs that are told to stop save themselves, and end as if they had not been stopped."""

import os
import pickle
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser

import gsa
from gsa.runner import train
from gsa.saved import read_checkpoint
from gsa.training import SaveOnSignal, Stopped
from tests.forks import python
from tests.runner.faults import act_in
from tests.runner.test_run import DROPOUT, outcome

ROOT = Path(gsa.__file__).parent.parent


HALVES = ("trainer.accumulate_grad_batches=2",)


@pytest.fixture(autouse=True)
def _hangs_up():
    """Nobody ignores it, as nohup does."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


# When it is told (part, epoch, batch), the steps it then saves after, other options, and by which signal.
@pytest.mark.parametrize("part, epoch, index, steps, extra, number", [
    pytest.param("training", 1, 1, 6, (), signal.SIGINT, marks=pytest.mark.slow),
    ("training", 1, 1, 6, ("data.num_workers=2",), signal.SIGTERM),
    ("training", 1, 0, 3, HALVES, signal.SIGHUP),  # with the second half of the step
    pytest.param(  # the same three in every epoch
        "training", 1, 1, 5, ("trainer.overfit_batches=3",), signal.SIGTERM, marks=pytest.mark.slow
    ),
    ("training", 0, 3, 4, (), signal.SIGTERM),  # the last batch: after the validation
    pytest.param(  # a single batch an epoch
        "training", 0, 0, 1, ("trainer.limit_train_batches=1",), signal.SIGTERM, marks=pytest.mark.slow
    ),
    ("validation", 0, 1, 4, (), signal.SIGINT),
    pytest.param("validation", 0, 1, 4, ("data.num_workers=2",), signal.SIGINT, marks=pytest.mark.slow),
    pytest.param("validation", 1, 1, 8, (), signal.SIGTERM, marks=pytest.mark.slow),  # of the last epoch
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


COMBINED = "lightning.pytorch.utilities.combined_loader"


# Where a run is told to stop, whether a checkpoint of it is on disk then, and by which signal.
@pytest.mark.parametrize("place, saved, number", [
    ("gsa.data.PictureDataModule.setup", False, signal.SIGTERM),
    ("gsa.training.Classifier.validation_step", False, signal.SIGTERM),  # the sanity check
    (f"{COMBINED}._shutdown_workers_and_reset_iterator", True, signal.SIGINT),  # after training; it may take seconds
    ("gsa.training.Classifier.test_step", True, signal.SIGINT),
    ("gsa.runner._run.describe", True, signal.SIGUSR1),
])  # fmt: skip
def test_a_run_may_be_told_to_stop_at_any_place(small, place, saved, number):
    options = (*DROPOUT, "+trainer.num_sanity_val_steps=1")
    whole = outcome(train(small(*options, folder="whole"))[1])
    before = signal.getsignal(number)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped) as stopped:
        tell = iter([signal.raise_signal])  # once: a second signal would stop it at once
        patch.setattr(place, lambda *_, **__: next(tell, id)(number))
        train(small(*options, folder="parts"))
    assert stopped.value.code == 128 + number and signal.getsignal(number) == before
    assert (stopped.value.checkpoint is not None) == saved
    assert not (Path(small(folder="parts").output_dir) / "report.json").exists()
    weights, rows, accuracy = outcome(train(small(*options, "ckpt_path=auto", folder="parts"))[1])
    assert (rows, accuracy) == whole[1:] and all(torch.equal(weights[name], whole[0][name]) for name in weights)


def test_a_run_calls_saved_what_it_has_saved_or_went_on_from(small, tmp_path):
    """Told to stop before a step; planted: a file of another run, at the place where this one would save."""
    last = tmp_path / "run" / "checkpoints" / "last.ckpt"
    train(small("trainer.max_epochs=1", folder="first"))
    shutil.copytree(tmp_path / "first", tmp_path / "run")
    for begun in (None, str(last.with_name("best.ckpt"))):
        listener = SaveOnSignal(str(last.parent), begun)
        with listener.listening(), pytest.raises(Stopped) as stopped:
            signal.raise_signal(signal.SIGTERM)
        assert stopped.value.checkpoint == (begun and Path(begun))
    assert "best.ckpt" in str(stopped.value)
    with listener.listening(), pytest.raises(Stopped, match=r"saved in .*last.ckpt"):
        last.write_bytes(last.read_bytes())
        signal.raise_signal(signal.SIGTERM)


def test_a_terminal_that_closes_is_heard_unless_it_is_ignored(tmp_path):
    """It says so twice; planted: a second signal that is another."""
    listener = SaveOnSignal(str(tmp_path))
    with listener.listening(), pytest.raises(Stopped) as stopped:
        listener.waits = True
        for number in (signal.SIGHUP, signal.SIGHUP):
            signal.raise_signal(number)
        assert listener.received == signal.SIGHUP
        signal.raise_signal(signal.SIGTERM)
    assert stopped.value.code == 128 + signal.SIGTERM
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with listener.listening():
        signal.raise_signal(signal.SIGHUP)
        assert listener.received is None


def test_who_waits_for_sigusr2_hears_it_once_the_run_is_saved(tmp_path):
    """submitit has its job queued again; planted: nobody waits, and it ends the process as it does any other."""
    heard, listener = [], SaveOnSignal(str(tmp_path))
    with listener.listening():
        assert signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL
    before = signal.signal(signal.SIGUSR2, lambda number, frame: heard.append(number))
    try:
        with listener.listening():
            listener.waits = True
            signal.raise_signal(signal.SIGUSR2)
            assert listener.received == signal.SIGUSR2 and not heard  # it is noted, until the step has been saved
            with pytest.raises(Stopped) as stopped:
                listener.stop_if_told()
        assert heard == [signal.SIGUSR2] and stopped.value.code == 128 + signal.SIGUSR2
    finally:
        signal.signal(signal.SIGUSR2, before)


@pytest.mark.skipif(not hasattr(signal, "sigwaitinfo"), reason="workers do not know who has sent a signal")
def test_the_command_ends_with_the_code_of_the_signal(tmp_path):
    """Told as a whole, as by Ctrl-C in a terminal or by SLURM. Planted: workers that the signal ends fail the run."""
    folder = tmp_path / "optimizer.lr=0.01"  # a name as sweeps give it
    command = [sys.executable, str(ROOT / "train.py"), "model=digits_z2_sa", "callbacks=quiet", "report=false",
               "data.num_workers=1", "trainer.accelerator=cpu", f"hydra.run.dir='{folder}'"]  # fmt: skip
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)  # fmt: skip
    while not (folder / "checkpoints" / "last.ckpt").exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGTERM)
    text = process.communicate()[0].decode()
    assert process.returncode == 143, text
    assert "stopped by SIGTERM and saved in" in text and "Traceback" not in text
    (word,) = shlex.split(text.partition("the same command goes on with ")[2].splitlines()[0])
    assert OverridesParser.create().parse_override(word).value() == str(folder / "checkpoints" / "last.ckpt")


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


def test_a_job_that_is_queued_again_is_told_to_end_and_saves(tmp_path):
    """By SLURM, as soon as one of its runs is saved; planted: a third signal, and a first one that was another."""
    for first, stops_at in ((signal.SIGUSR1, 3), (signal.SIGTERM, 2)):
        listener, heard = SaveOnSignal(str(tmp_path)), 0
        with listener.listening(), pytest.raises(Stopped):
            listener.waits = True
            for number in (first, signal.SIGTERM, signal.SIGTERM):
                heard += 1
                signal.raise_signal(number)
        assert heard == stops_at and listener.received == first


def test_who_is_told_by_another_process_first_hears_an_echo(tmp_path, monkeypatch):
    """Of the signal that comes to all; planted: a later one, and one process alone, in which it is a second wish."""
    tell = lambda number, *_, **__: number.fill_(signal.SIGUSR1)  # noqa: E731
    monkeypatch.setattr("torch.distributed.all_reduce", tell)
    listener = SaveOnSignal(str(tmp_path))
    with listener.listening():
        listener.waits, listener._hosts = True, object()
        assert listener._anyone_was_told() and listener.received == signal.SIGUSR1
        signal.raise_signal(signal.SIGUSR1)
        monkeypatch.setattr("gsa.training._signals._ONCE", -1.0)
        with pytest.raises(Stopped, match="SIGUSR1"):
            signal.raise_signal(signal.SIGUSR1)
    monkeypatch.undo()
    with listener.listening():
        listener.waits, listener._hosts = True, None
        assert not listener._anyone_was_told()
        signal.raise_signal(signal.SIGUSR1)
        with pytest.raises(Stopped, match="SIGUSR1"):
            signal.raise_signal(signal.SIGUSR1)


SWEEP = """
import multiprocessing, os, pathlib, signal, sys, threading, time
from gsa.runner._folder import held
from gsa.runner._sweep_signals import let_jobs_save

signal.signal(signal.SIGHUP, signal.SIG_DFL)
folder, told = pathlib.Path(sys.argv[1]), signal.Signals(int(sys.argv[2]))

def job(name, begun):
    (folder / name).mkdir()
    def save(number, frame):
        time.sleep(0.3)
        (folder / name / "saved").touch()
        raise SystemExit(0)
    signal.signal(told, save)
    with held(folder / name):
        begun.set()
        try:
            time.sleep(60)
        except SystemExit:
            pass
    (folder / name / "ended").touch()
    time.sleep(60)  # the next job

let_jobs_save(folder, lambda number: (folder / f"after {number}").touch())
fork = multiprocessing.get_context("fork")
for name in ("a", "b"):
    begun = fork.Event()
    fork.Process(target=job, args=(name, begun)).start()
    begun.wait()
signals = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))  # as SLURM, of a job that is queued again
try:
    if told == signal.SIGUSR1:
        signals.start()
    os.kill(os.getpid(), told)
except SystemExit as stopped:
    print(stopped.code, [str(path.relative_to(folder)) for path in sorted(folder.glob("*/*"))])
    for process in multiprocessing.active_children():
        process.join(10)
    print(multiprocessing.active_children())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
def test_a_sweep_waits_until_the_jobs_in_other_processes_have_saved(tmp_path, number):
    """And ends them then, before they begin others."""
    done = python("-c", SWEEP, tmp_path, int(number))
    assert done.returncode == 0, done.stderr
    code, saved, left = done.stdout.partition(" ")[0], done.stdout.count("/saved"), done.stdout.splitlines()[-1]
    assert (code, saved, left) == (str(128 + number), 2, "[]") and (tmp_path / f"after {int(number)}").exists()
    assert "have saved; a second signal stops at once" in done.stderr


def test_what_stopped_a_job_leaves_its_process(tmp_path):
    stopped = pickle.loads(pickle.dumps(Stopped(signal.SIGTERM, tmp_path)))
    assert stopped.code == 128 + signal.SIGTERM and str(tmp_path) in str(stopped)
