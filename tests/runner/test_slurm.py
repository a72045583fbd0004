"""Jobs of SLURM: processes of one run or of runs of their own, jobs that are queued again, signals that save."""

import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from hydra.types import RunMode
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.utilities import rank_zero_only
from omegaconf import OmegaConf

from gsa.runner import _ending, _entry, _slurm, train
from gsa.runner._begun import begun
from gsa.runner._build import build
from gsa.runner._ranks import is_first_rank, know_rank
from gsa.runner._resume import finished_report
from gsa.runner._schema import ConfigError
from gsa.runner._slurm import SlurmStep, environments
from gsa.saved import read_checkpoint
from gsa.training import Stopped
from tests.runner.test_from_outside import FORM, TWO
from tests.runner.test_ranks import ROOT, SMALLEST

STEP = {
    "JOB_ID": "77", "STEP_ID": "3", "STEP_NUM_TASKS": "2", "STEP_NUM_NODES": "1", "STEP_TASKS_PER_NODE": "2",
    "PROCID": "1", "LOCALID": "1", "NODEID": "0", "NTASKS": "2", "JOB_NAME": "mine", "STEP_NODELIST": "n[3-4]",
}  # fmt: skip
CPU = (*TWO, "trainer.accelerator=cpu", "trainer.sync_batchnorm=false")


@pytest.fixture
def step(monkeypatch):
    """As in the second of two processes that srun has started."""
    for name, value in STEP.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    return lambda **changed: [monkeypatch.setenv(f"SLURM_{name}", value) for name, value in changed.items()]


def test_processes_of_a_step_make_one_run_where_the_trainer_has_several(step):
    (environment,) = environments(together=True)
    assert isinstance(environment, SlurmStep) and environment.creates_processes_externally
    assert (environment.world_size(), environment.global_rank(), environment.local_rank()) == (2, 1, 1)
    assert (environment.node_rank(), environment.main_address, environment.main_port) == (0, "127.0.0.1", 17390)
    assert not is_first_rank()


def test_processes_on_several_nodes_meet_on_the_first(step):
    step(STEP_NUM_NODES="2")
    assert SlurmStep().main_address == "n3"


def test_a_run_of_one_process_is_the_first_of_its_own(step, configure):
    """Planted: known by its number, it would train to its end and write nothing."""
    (environment,) = environments(together=False)
    assert isinstance(environment, LightningEnvironment) and not is_first_rank()
    know_rank(configure())
    assert is_first_rank()
    with pytest.warns(UserWarning, match="srun has started 2 processes, and this one trains a run of its own"):
        assert build(configure()).trainer.global_rank == 0


def test_a_script_that_srun_has_not_started_starts_its_processes_itself(step, monkeypatch):
    """Though the job asks for two tasks, by --ntasks or --ntasks-per-node; elsewhere Lightning finds what there is."""
    monkeypatch.delenv("SLURM_STEP_NUM_TASKS")
    (environment,) = environments(together=True)
    assert isinstance(environment, LightningEnvironment) and not environment.creates_processes_externally
    monkeypatch.delenv("SLURM_JOB_ID")
    assert environments(together=True) == []


@pytest.mark.parametrize("changed, message", [
    ({"STEP_NUM_TASKS": "4", "STEP_TASKS_PER_NODE": "4"},
     "4 processes on each of 1 nodes: expected trainer.num_nodes=1 trainer.devices=4, but got 1 and 2"),
    ({"STEP_NUM_TASKS": "4", "STEP_TASKS_PER_NODE": "2(x2)", "STEP_NUM_NODES": "2"},
     "2 processes on each of 2 nodes: expected trainer.num_nodes=2 trainer.devices=2, but got 1 and 2"),
    ({"STEP_NUM_TASKS": "3", "STEP_TASKS_PER_NODE": "2,1", "STEP_NUM_NODES": "2"}, "as many processes on every node"),
])  # fmt: skip
def test_another_number_of_processes_than_the_trainers_is_refused(step, configure, changed, message):
    build(configure(*SMALLEST, *CPU))
    step(**changed)
    with pytest.raises(ConfigError, match=message):
        build(configure(*SMALLEST, *CPU))


def test_what_lightning_has_requeued_is_no_checkpoint_of_a_run(step, configure, tmp_path):
    """Planted: elsewhere it finds the file."""
    step(STEP_NUM_TASKS="1")
    trainer = build(configure(folder="here")).trainer
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "hpc_ckpt_1.ckpt").touch()
    connector = trainer._checkpoint_connector
    assert connector._hpc_resume_path is None and super(type(connector), connector)._hpc_resume_path.endswith("1.ckpt")


def test_a_job_that_goes_on_by_itself_has_the_folder_of_its_number(step):
    """Planted: of a moment, a job that is queued again would not find it."""
    assert begun(FORM, True, "auto") == "job_77_3" and begun(FORM, None, "auto") == "job_77_1"
    step(STEP_NUM_TASKS="1")
    assert begun(FORM, None, "auto") == begun(FORM, True, "auto") == "job_77"
    assert begun(FORM, None) != begun(FORM, None)


@pytest.mark.parametrize("agents, name", [("2", "job_77"), ("1", "job_77_1")])  # one a node, or each a run of its own
def test_so_has_one_whose_processes_torchrun_has_started(step, monkeypatch, agents, name):
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    monkeypatch.setenv("GROUP_WORLD_SIZE", agents)
    assert begun(FORM, "ddp", "auto") == name


def test_the_way_on_names_a_folder_that_the_same_words_do_not_find(configure, monkeypatch, tmp_path):
    last, words = tmp_path / "last.ckpt", []
    found = SimpleNamespace(mode=RunMode.RUN, sweep=SimpleNamespace(dir="s"), overrides=SimpleNamespace(hydra=words))
    monkeypatch.setattr(_ending.HydraConfig, "get", lambda: found)
    for ckpt_path, named in (("auto", True), ("null", True)):
        assert ("ckpt_path=" in _ending.way_on(last, configure(f"ckpt_path={ckpt_path}"), signal.SIGTERM)) is named
    words.append("hydra.run.dir=here")
    for ckpt_path, named in (("auto", False), ("null", True)):
        assert ("ckpt_path=" in _ending.way_on(last, configure(f"ckpt_path={ckpt_path}"), signal.SIGTERM)) is named
    words.clear()
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    itself = _ending.way_on(last, configure("ckpt_path=auto"), signal.SIGUSR1)  # as it is queued again
    assert itself == "the same command goes on"
    assert "ckpt_path=" in _ending.way_on(last, configure("ckpt_path=auto"), signal.SIGTERM)  # as by scancel
    found.mode, found.sweeper = RunMode.MULTIRUN, {}
    anew = _ending.way_on(last, configure("ckpt_path=null"), signal.SIGUSR1)
    assert anew == "the same command goes on with  hydra.sweep.dir=s ckpt_path=auto"


def test_a_job_is_queued_again_by_who_goes_on_by_itself(step, monkeypatch, capsys):
    monkeypatch.setattr(_slurm, "queue_again", lambda: "queued")
    for number, ckpt_path in ((signal.SIGUSR1, None), (signal.SIGTERM, "auto")):
        _ending.queue_again_if_told(number, ckpt_path)
        assert not capsys.readouterr().err
    _ending.queue_again_if_told(signal.SIGUSR1, "auto")
    assert capsys.readouterr().err == "queued\n"
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "the leader of a sweep")
    _ending.queue_again_if_told(signal.SIGUSR1, "auto")
    assert not capsys.readouterr().err


def test_it_is_queued_again_before_anything_is_uploaded(step, small, monkeypatch):
    """Planted: another process than the first."""
    step(STEP_NUM_TASKS="1")
    told = []

    def stopped(run):
        raise Stopped(signal.SIGUSR1, run.folder)

    @contextmanager
    def uploading():
        try:
            yield
        finally:
            told.append("uploaded")

    monkeypatch.setattr("gsa.runner._run._train", stopped)
    monkeypatch.setattr("gsa.runner._run.closing_wandb", uploading)
    monkeypatch.setattr(_slurm, "queue_again", lambda: told.append("queued"))
    for is_first in (True, False):
        monkeypatch.setattr("gsa.runner._run.is_first_rank", lambda is_first=is_first: is_first)
        with pytest.raises(Stopped):
            train(small("ckpt_path=auto"))
    assert told == ["queued", "uploaded", "uploaded"]


def test_of_the_processes_of_a_step_only_the_first_ends_with_the_code_of_a_signal(step, configure, monkeypatch):
    """As srun --kill-on-bad-exit ends all at the first; the others have saved."""

    def stopped(*_):
        raise Stopped(signal.SIGUSR1, None)

    monkeypatch.setattr("gsa.runner._run.train", stopped)
    for rank, code in ((0, 138), (1, 0)):
        monkeypatch.setattr(rank_zero_only, "rank", rank)
        with pytest.raises(SystemExit) as ended:
            _entry._main.__wrapped__(configure())
        assert ended.value.code == code


def test_a_job_that_is_started_again_goes_on_without_being_asked(configure, tmp_path, monkeypatch):
    """As one of submitit is; planted: another job is refused."""
    config = configure("ckpt_path=null")
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "last.ckpt").touch()
    (tmp_path / "run" / "config.yaml").write_text(OmegaConf.to_yaml(config, resolve=True))
    with pytest.raises(ConfigError, match="holds a run already"):
        finished_report(config)
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert finished_report(config) is None and config.ckpt_path == "auto"


def test_a_job_is_queued_again_by_its_name(step, tmp_path, monkeypatch):
    script = tmp_path / "scontrol"
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _slurm.queue_again() == "job 77 is queued again"
    assert (tmp_path / "asked").read_text() == "requeue 77\n"
    step(ARRAY_JOB_ID="70", ARRAY_TASK_ID="5")
    assert _slurm.queue_again() == "job 70_5 is queued again"
    script.write_text("#!/bin/sh\necho no >&2; exit 1\n")
    assert "not queued again: no" in _slurm.queue_again()
    script.unlink()
    assert "cannot be queued again" in _slurm.queue_again()


def test_a_job_of_submitit_that_was_stopped_has_failed(configure, tmp_path, monkeypatch, capsys):
    """Its leader would wait for who exits; planted: elsewhere the process ends with the signal's code."""

    def stopped(*_):
        raise Stopped(signal.SIGUSR2, tmp_path / "last.ckpt")

    monkeypatch.setattr("gsa.runner._run.train", stopped)
    monkeypatch.setattr(_entry, "way_on", lambda *_: "the same command goes on")
    for name, kind in ((None, Stopped), ("SUBMITIT_EXECUTOR", _ending.Failed)):
        if name:
            monkeypatch.setenv(name, "slurm")
        with pytest.raises(kind, match="stopped by SIGUSR2 and saved in .*last.ckpt"):
            _entry._main.__wrapped__(configure("ckpt_path=auto"))
        assert "the same command goes on" in capsys.readouterr().err


USR1 = """
import os, signal, sys
from gsa.runner import main
from lightning.pytorch.callbacks import Callback
class Tell(Callback):
    def on_train_batch_start(self, trainer, module, batch, index):
        if trainer.current_epoch == 1 and index == 1:
            os.kill(os.getpid(), signal.SIGUSR1)
sys.modules["tell"] = sys.modules["__main__"]
main()
"""


@pytest.mark.slow
def test_a_job_that_is_told_that_its_time_is_up_saves_and_is_queued_again(tmp_path):
    """As by  #SBATCH --signal=USR1@90; goes on in the folder of its number."""
    (tmp_path / "tell.py").write_text(USR1)
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    (tmp_path / "scontrol").chmod(0o755)
    job = {"SLURM_JOB_ID": "77", "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "tell.py", *SMALLEST, "trainer.max_epochs=2", "ckpt_path=auto"]
    options = {"cwd": tmp_path, "env": os.environ | job, "capture_output": True, "text": True, "timeout": 120}
    told = subprocess.run([*command, "+callbacks.tell._target_=tell.Tell"], **options)
    assert told.returncode == 128 + signal.SIGUSR1, told.stderr
    (run,) = Path(tmp_path / "outputs").glob("*/*/job_77")
    assert "stopped by SIGUSR1 and saved" in told.stderr and "job 77 is queued again" in told.stderr
    assert (tmp_path / "asked").read_text() == "requeue 77\n" and not list(run.glob("hpc_ckpt*"))
    assert read_checkpoint(run / "checkpoints" / "last.ckpt")["epoch"] == 1
