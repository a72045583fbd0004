"""Two processes train what one would have trained, on the same configuration, and fail together."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, SequentialSampler

import gsa
from gsa.data import DigitsDataModule, completed
from gsa.runner import train
from gsa.saved import read_checkpoint
from tests.data.test_own_data import Stripes

ROOT = Path(gsa.__file__).parent.parent
TWO = ("trainer.devices=2", "+trainer.strategy._target_=gsa.training.ddp", "+trainer.strategy.timeout=60")
SMALLEST = (
    "model=digits_z2_sa", "model.channels=4", "model.num_heads=1", "model.head_dim=3", "model.neighbourhood=3",
    "trainer.accelerator=cpu", "trainer.enable_progress_bar=false", "callbacks=quiet", "logger=none", "report=false",
    "trainer.max_epochs=2", "trainer.limit_train_batches=3",
)  # fmt: skip
EXACT = ("model.norm=sample", "trainer.precision=64-true", "optimizer=sgd", "data.batch_size=16")


def state(folder):
    return read_checkpoint(folder / "checkpoints" / "last.ckpt")["state_dict"]


class Trainer:
    """What a data module asks of its trainer."""

    def __init__(self, rank, world, shares_out=False):
        from types import SimpleNamespace as Is

        self._accelerator_connector = Is(use_distributed_sampler=shares_out)

        self.global_rank, self.world_size, self.limit_train_batches = rank, world, 1.0
        progress = Is(current=Is(processed=0))
        self.fit_loop = Is(epoch_progress=progress, epoch_loop=Is(batch_progress=progress), restarting=False)


@pytest.mark.parametrize("world", [1, 2, 4])
def test_the_batches_of_all_processes_together_are_those_of_one(world):
    def batches(rank, world, part):
        data = DigitsDataModule(batch_size=16)
        data.setup()
        data.trainer = Trainer(rank, world)
        return [labels for _, labels in getattr(data, f"{part}_dataloader")()], data

    shares = [batches(rank, world, "train")[0] for rank in range(world)]
    whole, _ = batches(0, 1, "train")
    assert {len(share) for share in shares} == {len(whole)} == {75}
    for step, labels in enumerate(whole):
        together = torch.empty_like(labels)
        for rank, share in enumerate(shares):
            together[rank::world] = share[step]
        assert torch.equal(together, labels)
    tested = [len(labels) for rank in range(world) for labels in batches(rank, world, "test")[0]]
    assert sum(tested) == 397  # none twice, none left out


def test_a_batch_that_cannot_be_shared_out_is_refused():
    data = DigitsDataModule(batch_size=15)
    data.setup()
    data.trainer = Trainer(0, 2)
    with pytest.raises(ValueError, match="divisible by its 2 processes, but got 15"):
        data.train_dataloader()


def test_batches_are_not_shared_out_twice():
    """Lightning's own samplers would take a share of every share."""
    data = DigitsDataModule(batch_size=16)
    for world, part in ((1, "train"), (2, "train"), (2, "val")):
        data.trainer = Trainer(0, world, shares_out=True)
        if world == 1:
            data.train_dataloader()
        else:
            with pytest.raises(ValueError, match=r"Trainer\(use_distributed_sampler=False\), but got True"):
                getattr(data, f"{part}_dataloader")()


@pytest.mark.parametrize("part", ["train", "val"])
def test_processes_that_overfit_have_shares_and_the_same_batches_in_all_epochs(part):
    """Lightning exchanges samplers that are not sequential for its own, the same in all processes."""
    seen = []
    for rank in (0, 1):
        data = DigitsDataModule(batch_size=16)
        data.trainer = Trainer(rank, 2)
        data.trainer.overfit_batches = 3
        loader = getattr(data, f"{part}_dataloader")()
        assert isinstance(loader.sampler, SequentialSampler)
        first = list(loader.sampler)
        if part == "train":
            loader.sampler.set_epoch(1)
        assert list(loader.sampler) == first
        seen.append(set(first))
    together = len(data.parts[part]) // 16 * 16 if part == "train" else len(data.parts[part])
    assert not seen[0] & seen[1] and len(seen[0] | seen[1]) == together


@pytest.mark.parametrize("batch_size", [8, 12])
def test_batches_of_others_are_shared_out(batch_size):
    """64 pictures in batches of 12, the last of 4, of which three processes train on 6."""

    def batches(part, rank, world):
        data = completed(Stripes(batch_size=batch_size), seed=0)
        data.setup()
        data.trainer = Trainer(rank, world)
        return list(getattr(data, f"{part}_dataloader")())

    for world in (2, 4) if batch_size == 8 else (2, 3):
        for part in ("train", "test"):
            whole = [picture for pictures, _ in batches(part, 0, 1) for picture in pictures]
            shares = [batches(part, rank, world) for rank in range(world)]
            found = [picture for share in shares for pictures, _ in share for picture in pictures]
            assert {tuple(picture.flatten().tolist()) for picture in found} == {
                tuple(picture.flatten().tolist()) for picture in whole
            }
            if part == "test":
                assert len(found) == 64
                rows = [next(i for i, one in enumerate(whole) if torch.equal(one, picture)) for picture in found]
                assert rows == [row for rank in range(world) for row in range(rank, 64, world)]
            else:
                assert {len(share) for share in shares} == {len(batches(part, 0, 1))}
                assert len({tuple(len(labels) for _, labels in share) for share in shares}) == 1


def test_batches_of_others_that_cannot_be_shared_out_are_refused():
    data = completed(Stripes(batch_size=8), seed=0)
    data.setup()
    data.trainer = Trainer(0, 3)
    with pytest.raises(ValueError, match="divisible by its 3 processes, but got 8"):
        data.train_dataloader()
    sampler = DistributedSampler(range(64), num_replicas=2, rank=0)
    data.inner.train_dataloader = lambda: DataLoader(range(64), 8, sampler=sampler)
    data.trainer = Trainer(0, 2)
    with pytest.raises(ValueError, match="all pictures to every process, .* has a DistributedSampler: leave it out"):
        data.train_dataloader()


@pytest.mark.slow
@pytest.mark.parametrize("weighed", ["class_weights=null", "class_weights=balanced"])
def test_two_processes_train_what_one_trains(small, tmp_path, weighed):
    """float64, no dropout: weights after twelve steps agree to 1e-10, accuracies are the same."""
    options = (*EXACT, "trainer.limit_train_batches=6", weighed)
    one, alone = train(small(*options, folder="one"))
    two, together = train(small(*options, *TWO, folder="two"))
    assert two == one
    assert together["report"]["used"] == alone["report"]["used"]
    said = [
        [line.split(",") for line in (tmp_path / name / "test.csv").read_text().splitlines()] for name in ("one", "two")
    ]
    assert [row[:3] for row in said[0]] == [row[:3] for row in said[1]] and len(said[0]) > 1
    for (name, a), b in zip(state(tmp_path / "one").items(), state(tmp_path / "two").values(), strict=True):
        assert (a - b).abs().max() <= 1e-10, name
    for a, b in zip(alone["history"], together["report"]["history"], strict=True):
        assert abs(a["train/loss"] - b["train/loss"]) < 1e-12 and abs(a["val/loss"] - b["val/loss"]) < 1e-6


@pytest.mark.slow
def test_two_processes_train_what_one_trains_on_data_of_others(configure, tmp_path):
    """float64, no dropout; with batches of 12 of 64, of which the last has 4. Planted in the tests of shares."""
    data = ("data=own", "data._target_=tests.data.test_own_data.Stripes", "data.batch_size=12", "+data.count=64")
    same = (*data, *SMALLEST[:-1], "model.norm=sample", "trainer.precision=64-true", "optimizer=sgd", "recipe=digits")
    one, alone = train(configure(*same, folder="one"))
    two, together = train(configure(*same, *TWO, folder="two"))
    assert two == pytest.approx(one) and together["report"]["used"] == alone["report"]["used"]
    for (name, a), b in zip(state(tmp_path / "one").items(), state(tmp_path / "two").values(), strict=True):
        assert (a - b).abs().max() <= 1e-10, name
    rows = [(tmp_path / name / "test.csv").read_text().splitlines() for name in ("one", "two")]
    assert [row.split(",")[:3] for row in rows[0]] == [row.split(",")[:3] for row in rows[1]] and len(rows[0]) == 65


SWEEP = """
import os
import gsa.runner._run
if os.environ["LAUNCHER"] == "stock":  # Lightning starts the other process on the command line of this one
    gsa.runner._run.needs_processes = lambda trainer: False
    gsa.runner._run.meet = lambda trainer, place: None
from gsa import runner
runner.main()
"""


@pytest.mark.slow
def test_two_processes_train_heads_that_start_at_offsets(tmp_path):
    smallest = [option for option in SMALLEST if not option.startswith("model")]
    done = subprocess.run([sys.executable, str(ROOT / "train.py"), *smallest, *TWO, f"hydra.run.dir={tmp_path}/run"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "report.json").read_text())["model"] == "digits_gsa"


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["ours", "stock"])
def test_an_optuna_sweep_trains_one_configuration_on_both_ranks(tmp_path, launcher):
    """Planted failure: with the stock launcher, every rank samples rates of its own."""
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    command = [sys.executable, str(script), "-m", "hydra/sweeper=optuna",
               f"hydra.sweeper.n_trials={2 if launcher == 'ours' else 1}",
               "hydra.sweeper.n_jobs=1", "hydra.sweeper.study_name=s", "hydra.sweeper.storage=null",
               "hydra.sweeper.direction=maximize", "optimizer.lr=interval(0.001,0.1)",
               f"hydra.sweep.dir={tmp_path}/out",
               "+callbacks.tell._target_=tests.runner.faults.TellConfig",
               f"+callbacks.tell.folder={tmp_path}/told", *SMALLEST, *TWO]  # fmt: skip
    env = os.environ | {"PYTHONPATH": str(ROOT), "LAUNCHER": launcher}
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    told = [json.loads(p.read_text()) for p in sorted((tmp_path / "told").iterdir(), key=lambda p: p.stat().st_mtime)]
    rates = [t["lr"] for t in told]
    if launcher == "ours":
        assert done.returncode == 0, done.stderr
        assert len(rates) == 4 and rates[0] == rates[1] != rates[2] == rates[3]
        assert (tmp_path / "out" / "1" / "report.json").exists() and not (tmp_path / "out" / "2").exists()
    else:
        assert rates[0] != rates[1]


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
