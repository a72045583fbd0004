"""Several processes stop, save and end together, whichever of them is told, fails or is killed."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from gsa.saved import read_checkpoint
from tests.runner.test_ranks import ROOT, SMALLEST, TWO


def started(run, *options, script=ROOT / "train.py"):
    """The command, in its second epoch: (process, pids of its ranks in their order)."""
    command = [sys.executable, str(script), *SMALLEST, *TWO[:2], f"hydra.run.dir={run}", *options]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)  # fmt: skip
    start = time.monotonic()
    while not (run / "checkpoints" / "last.ckpt").exists():
        if time.monotonic() - start > 120:
            process.kill()
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    return process, processes_of(run)[:2]  # before their data loaders'


def failing(how, rank=None):
    keys = ("_target_=tests.runner.faults.FailAt", f"{how=!s}", *([] if rank is None else [f"{rank=}"]))
    return tuple(f"+callbacks.fail.{key}" for key in keys)


def processes_of(run):
    """The ranks of a run and the workers of their data loaders that are alive."""
    found = subprocess.run(["pgrep", "-f", f"rank.run.. {run}"], capture_output=True, text=True).stdout
    return sorted(map(int, found.split()))


def wait_for_none(run, seconds):
    start = time.monotonic()
    while left := processes_of(run):
        assert time.monotonic() - start < seconds, f"left: {left}"
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "told, number",
    [("parent", signal.SIGTERM), ("parent", signal.SIGINT), ("rank 1", signal.SIGTERM), ("all", signal.SIGTERM)],
)
def test_a_signal_to_one_process_stops_and_saves_all(tmp_path, told, number):
    """Planted failures: of Lightning's handler, which talks to other processes from within the signal, and hangs; of
    torchrun's agent, which tells the workers of data loaders too; of a process that is told twice."""
    run = tmp_path / "run"
    process, ranks = started(run, "trainer.max_epochs=500", "data.num_workers=1")
    for pid in {"parent": [process.pid], "rank 1": ranks[1:], "all": [process.pid, *ranks]}[told]:
        os.kill(pid, number)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number, text
    assert f"stopped by {number.name} and saved in" in text and "the same command goes on with" in text
    assert "Traceback" not in text
    wait_for_none(run, 10)
    assert read_checkpoint(run / "checkpoints" / "last.ckpt")["global_step"] >= 3  # since it was seen


QUEUED = """
import os, signal, sys
sys.path.insert(0, os.getcwd())
from gsa.runner import main

def queued(number, frame):
    print("queued again", flush=True)
    raise SystemExit(0)

signal.signal(signal.SIGUSR2, queued)
main()
"""


@pytest.mark.slow
def test_who_waits_for_sigusr2_hears_it_once_all_processes_have_saved(tmp_path):
    """As submitit does, in a job of one process that starts the others."""
    run, script = tmp_path / "run", tmp_path / "job.py"
    script.write_text(QUEUED)
    process, _ = started(run, "trainer.max_epochs=500", "data.num_workers=1", script=script)
    process.send_signal(signal.SIGUSR2)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and text.count("queued again") == 1 and "Traceback" not in text, text
    wait_for_none(run, 10)
    assert read_checkpoint(run / "checkpoints" / "last.ckpt")["global_step"] >= 3  # since it was seen


@pytest.mark.slow
@pytest.mark.parametrize("place", ["on_sanity_check_start", "on_test_start", "on_test_end"])
def test_a_signal_outside_of_training_stops_all_and_the_run_goes_on(tmp_path, place):
    command = [sys.executable, str(ROOT / "train.py"), *SMALLEST, *TWO[:2], "+trainer.num_sanity_val_steps=1",
               f"hydra.run.dir={tmp_path / 'run'}", "+callbacks.tell._target_=tests.runner.faults.TellParent",
               "ckpt_path=auto"]  # fmt: skip
    env = os.environ | {"TOLD_AT": place}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 143 and "stopped by SIGTERM" in done.stderr, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    wait_for_none(tmp_path / "run", 10)
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0 and (tmp_path / "run" / "report.json").exists(), again.stderr


@pytest.mark.slow
def test_the_report_of_before_stays_until_the_first_step(tmp_path):
    run = tmp_path / "run"
    options = (*SMALLEST[:-2], *TWO[:2], "trainer.limit_train_batches=3", "scheduler=constant", f"hydra.run.dir={run}")
    tell = "+callbacks.tell._target_=tests.runner.faults.TellParent"
    command = [sys.executable, str(ROOT / "train.py"), *options, tell]
    longer = [*command, "trainer.max_epochs=2", f"ckpt_path={run}/checkpoints/last.ckpt"]
    subprocess.run([*command, "trainer.max_epochs=1"], cwd=ROOT, check=True, capture_output=True)
    before = [(run / name).read_text() for name in ("report.json", "config.yaml")]
    env = os.environ | {"TOLD_AT": "on_fit_start"}
    told = subprocess.run(longer, cwd=ROOT, env=env, capture_output=True, text=True)
    assert told.returncode == 143 and "stopped by SIGTERM" in told.stderr, told.stderr
    assert [(run / name).read_text() for name in ("report.json", "config.yaml")] == before
    subprocess.run(longer, cwd=ROOT, check=True, capture_output=True)
    assert json.loads((run / "report.json").read_text())["epochs"] == 2


@pytest.mark.slow
def test_a_second_signal_ends_all_processes_at_once(tmp_path):
    run = tmp_path / "run"
    process, _ = started(run, *failing("hang", rank=0), "data.num_workers=1")
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode != 0
    wait_for_none(run, 10)


@pytest.mark.slow
def test_no_process_outlives_the_first(tmp_path):
    run = tmp_path / "run"
    process, _ = started(run, "trainer.max_epochs=500", "data.num_workers=1")
    process.kill()
    process.communicate(timeout=60)
    wait_for_none(run, 10)  # workers of data loaders look every five seconds


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("how", ["raise", "kill", "hang"])
def test_all_processes_end_within_a_minute_when_one_fails(tmp_path, how, rank):
    run = tmp_path / "run"
    process, _ = started(run, "+trainer.strategy.timeout=20", *failing(how, rank))
    start = time.monotonic()
    text, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    wait_for_none(run, 10)
    assert time.monotonic() - start < 60
    why = {"raise": f"rank {rank} has failed: RuntimeError: planted: this rank has failed",
           "kill": f"rank {rank} has failed: ended by SIGKILL",
           "hang": f"rank {1 - rank} has failed: RuntimeError: .*(Timed out|timeout)"}[how]  # fmt: skip
    assert re.search(why, text), text
    assert read_checkpoint(run / "checkpoints" / "last.ckpt")["epoch"] == 0


@pytest.mark.slow
def test_a_rank_that_is_killed_after_a_resumption_is_named_and_the_run_goes_on_again(tmp_path):
    run = tmp_path / "run"
    command = [sys.executable, str(ROOT / "train.py"), *SMALLEST, *TWO[:2], f"hydra.run.dir={run}", "ckpt_path=auto",
               *failing("kill")]  # fmt: skip
    for rank in (0, 1):  # both in the second epoch, which the second time is resumed
        env = os.environ | {"FAILING_RANK": str(rank)}
        killed = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        assert killed.returncode == 1 and f"rank {rank} has failed: ended by SIGKILL" in killed.stderr, killed.stderr
        assert ("going on from" in killed.stdout) == (rank == 1)
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert again.returncode == 0 and (run / "report.json").exists(), again.stderr
