"""Processes that torchrun or srun has started: one folder for all, and a place to meet for every run."""

import os
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from torch.distributed import TCPStore

from gsa.runner import _ranks
from gsa.runner._begun import begun
from gsa.runner._build import build
from gsa.runner._schema import ConfigError
from gsa.saved import read_checkpoint
from tests.runner.test_ranks import ROOT, SMALLEST

TWO = ("trainer=ddp_nodes", "trainer.num_nodes=1", "trainer.devices=2")
FORM = "%Y-%m-%d_%H-%M-%S_%f"


def torchrun(*options, cwd=ROOT, agent=()):
    """The last lines of a command that two processes carry out."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone", *agent]
    done = subprocess.run(
        [*command, str(ROOT / "train.py"), *SMALLEST, *TWO, *options], cwd=cwd, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_all_processes_of_an_agent_began_at_one_moment(monkeypatch):
    """Planted: without it, every call has a moment of its own, as have runs of their own."""
    assert begun(FORM, together=True) != begun(FORM, together=True)
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    agent = {"USE_AGENT_STORE": "True", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    for name, value in agent.items():
        monkeypatch.setenv(name if "MASTER" in name else f"TORCHELASTIC_{name}", value)
    assert begun(FORM, together=True) == begun(FORM, together=True) != begun(FORM, together=None)


def test_all_processes_of_a_step_of_slurm_have_its_name(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_STEP_ID", "3")
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "1")
    assert begun(FORM, together=True) != begun(FORM, together=True)
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    assert begun(FORM, together=True) == "job_77_3" != begun(FORM, together=None)


def test_processes_that_would_each_train_the_whole_run_are_refused(configure, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="started 2 processes, .* expected trainer=ddp_nodes"):
        build(configure())


@pytest.mark.parametrize("outside", [True, False])
def test_a_seed_that_every_process_would_draw_for_itself_is_refused(monkeypatch, outside):
    told = {"is_alone": False, "is_ddp": True, "started_from_outside": outside, "environment_of": None}
    for name, value in told.items():
        monkeypatch.setattr(_ranks, name, lambda trainer, value=value: value)
    trainer = SimpleNamespace(world_size=2, num_nodes=1, num_devices=2)
    _ranks.check_processes(trainer, 16, draws_seed=False)
    with pytest.raises(ConfigError, match="seed=null draws another") if outside else nullcontext():
        _ranks.check_processes(trainer, 16, draws_seed=True)


def test_another_number_of_processes_on_a_node_than_the_trainers_is_refused(monkeypatch):
    """Eight on one node are as many as four on two."""
    told = {"is_alone": False, "is_ddp": True, "started_from_outside": True, "environment_of": None}
    for name, value in told.items():
        monkeypatch.setattr(_ranks, name, lambda trainer, value=value: value)
    trainer = SimpleNamespace(world_size=8, num_nodes=2, num_devices=4)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    _ranks.check_processes(trainer, 16, draws_seed=False)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    with pytest.raises(ConfigError, match=r"expected trainer.devices=8 trainer.num_nodes=1, but got 4 and 2"):
        _ranks.check_processes(trainer, 16, draws_seed=False)


@pytest.mark.slow
def test_a_run_goes_on_whenever_it_is_asked(tmp_path):
    """Planted: processes that all hold the folder refuse one another, two times of three."""
    for epochs in range(1, 5):
        goes_on = (f"trainer.max_epochs={epochs}", f"ckpt_path={tmp_path}/run/checkpoints/last.ckpt")
        torchrun(f"hydra.run.dir={tmp_path}/run", *goes_on[:epochs])
    assert read_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")["epoch"] == 3


@pytest.mark.slow
def test_the_jobs_of_a_sweep_follow_one_another_in_one_folder(tmp_path):
    """Planted: the processes of the second job wait for ever where those of the first have met."""
    torchrun("-m", "seed=0,1,2", cwd=tmp_path)
    (folder,) = (tmp_path / "multirun").iterdir()
    assert sorted(report.parent.name for report in folder.glob("*/report.json")) == ["0", "1", "2"]


@pytest.mark.slow
def test_processes_that_are_started_again_go_on_in_their_folder(tmp_path):
    (tmp_path / "failing.py").write_text(
        "import os\n"
        "from tests.runner.faults import FailAt\n"
        "class FailOnce(FailAt):\n"
        "    def on_train_batch_start(self, *step):\n"
        "        if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "            super().on_train_batch_start(*step)\n"
    )
    fails = [f"+callbacks.fail.{key}" for key in ("_target_=failing.FailOnce", "how=raise", "rank=1")]
    said = torchrun("ckpt_path=auto", *fails, cwd=tmp_path, agent=["--max-restarts=1"])
    (run,) = (tmp_path / "outputs").glob("*/*/*")
    assert "planted: this rank has failed" in said and f"going on from {run}/checkpoints/last.ckpt" in said
    assert (run / "report.json").exists() and read_checkpoint(run / "checkpoints" / "last.ckpt")["epoch"] == 1
