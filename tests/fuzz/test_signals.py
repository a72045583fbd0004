"""Runs that are told to stop, or killed, at any moment: the same command goes on, and ends as if nothing had been."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import gsa
from gsa.saved import read_checkpoint

ROOT = Path(gsa.__file__).parent.parent
SMALLEST = (
    "model=digits_z2_sa", "model.channels=4", "model.num_heads=1", "model.head_dim=3", "model.neighbourhood=3",
    "model.dropout=0.2", "data.augmentation=[turns]", "trainer.accelerator=cpu", "trainer.enable_progress_bar=false",
    "callbacks=quiet", "logger=none", "report=false", "trainer.max_epochs=4", "trainer.limit_train_batches=15",
    "trainer.limit_val_batches=1", "trainer.limit_test_batches=1", "ckpt_path=auto",
)  # fmt: skip
TWO = ("trainer.devices=2", "+trainer.strategy._target_=gsa.training.ddp", "+trainer.strategy.timeout=60")
KINDS = {"alone": (), "two workers": ("data.num_workers=2",), "two processes": TWO}
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
# Twenty moments, as shares of the time that a whole run takes.
CASES = [(kind, case) for case in range(20) for kind in [list(KINDS)[case % 3]]]


def started(kind, folder):
    command = [sys.executable, str(ROOT / "train.py"), *SMALLEST, *KINDS[kind], f"hydra.run.dir={folder}"]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, start_new_session=True)  # fmt: skip


def outcome(folder):
    """Weights, the rows of all epochs but for their seconds, and accuracies."""
    report = json.loads((folder / "report.json").read_text())
    rows = [{name: value for name, value in row.items() if name != "seconds"} for row in report["history"]]
    weights = read_checkpoint(folder / "checkpoints" / "last.ckpt")["state_dict"]
    return weights, rows, (report["val_accuracy"], report["test_accuracy"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """whole(kind) → what a run that nobody stops ends with, and the seconds that it takes."""
    found = {}

    def of(kind):
        if kind not in found:
            folder, start = tmp_path_factory.mktemp("whole") / "run", time.monotonic()
            text, _ = (process := started(kind, folder)).communicate()
            assert process.returncode == 0, text
            found[kind] = outcome(folder), time.monotonic() - start
        return found[kind]

    return of


@pytest.mark.fuzz
@pytest.mark.parametrize("kind, case", CASES)
def test_a_run_that_is_stopped_at_any_moment_ends_as_if_it_had_not_been(tmp_path, whole, kind, case):
    (weights, rows, accuracies), seconds = whole(kind)
    chance = random.Random(case)
    number, moment = chance.choice(SIGNALS), seconds * chance.uniform(0.2, 1)
    process = started(kind, tmp_path / "run")
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, number) if case % 2 else process.send_signal(number)  # the whole job, or its first
    text, _ = process.communicate(timeout=60)
    assert process.returncode in (0, -number, 128 + number), text
    if process.returncode == 128 + number:
        assert "Traceback" not in text, text
    while not (tmp_path / "run" / "report.json").exists():
        process = started(kind, tmp_path / "run")
        text, _ = process.communicate(timeout=120)
        assert process.returncode == 0 or "is at work on the run" in text, text  # ranks of a killed parent
    again, rows_too, accuracies_too = outcome(tmp_path / "run")
    assert [name for name in weights if not torch.equal(again[name], weights[name])] == []
    assert (rows_too, accuracies_too) == (rows, accuracies)


def test_the_comparison_notices_another_run(tmp_path, small):
    """Planted: a seed that is not the same."""
    from gsa.runner import train

    for seed in (0, 1):
        train(small(f"seed={seed}", folder=str(seed)))
    one, other = (outcome(tmp_path / str(seed)) for seed in (0, 1))
    assert one[1] != other[1] and any(not torch.equal(one[0][name], other[0][name]) for name in one[0])
