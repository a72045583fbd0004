"""Who is told of a signal, who starts processes, and what is said of those that have failed."""

import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace as Is

import pytest
import torch
from torch.distributed import TCPStore
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from gsa.runner import _processes, build, check
from gsa.runner._processes import _explain, _meeting_point
from gsa.runner._ranks import needs_processes
from gsa.training import SaveOnSignal, Stopped, warn_of_batch_norm
from gsa.training.adapter import synchronise_batch_norm_on_gpus_only

DDP_ON_CPU = ("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2")
ELASTIC = {"TORCHELASTIC_RUN_ID": "1", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}


@pytest.fixture
def ended(tmp_path):
    """ended(rank, code, message, after=seconds) → a process that has ended, perhaps after writing why."""

    def make(rank, code, message=None, after=0.0):
        file, moment = tmp_path / f"{rank}.json", 1e9 + after
        if message is not None:
            extra = {"py_callstack": f"Traceback of rank {rank}\n{message}", "timestamp": str(int(moment))}
            file.write_text(json.dumps({"message": {"message": message, "extraInfo": extra}}))
            os.utime(file, (moment, moment))
        failure = ProcessFailure(rank, 1234, code, str(file))
        failure.timestamp = int(moment)
        return failure

    return make


@pytest.mark.parametrize(("wished", "of_job", "threads", "each"), [
    ("", "", 6, "3"), ("", "", 1, "1"), ("5", "", 6, "5"), ("8", "8", 8, "4"),
])  # fmt: skip
def test_processes_share_the_threads_of_the_machine(tmp_path, monkeypatch, wished, of_job, threads, each):
    """And the cores of a job of SLURM; two that take all cores each would wait for one another."""
    started = []
    monkeypatch.setenv("OMP_NUM_THREADS", wished)
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", of_job)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(_processes, "start_processes", lambda *given: started.append(given) or Is(close=print))
    _processes._start(tmp_path, str(tmp_path), 2, 1234)
    ((_, _, commands, environments, _),) = started
    for safe, _, begin, *_ in commands.values():  # what is imported is as here, and no file of this folder instead
        assert safe == "-P" and f"sys.path[:] = {list(map(str, sys.path))!r};" in begin
    assert [environments[rank]["OMP_NUM_THREADS"] for rank in range(2)] == [each, each]


def test_the_rank_that_failed_first_is_quoted(ended, tmp_path):
    failures = {
        0: ended(0, 1, "RuntimeError: connection closed", after=0.4),
        1: ended(1, 1, "ValueError: planted", 0.1),
    }
    lines = _explain(failures, tmp_path).splitlines()
    assert lines[0] == "rank 1 has failed: ValueError: planted"
    assert "Traceback of rank 1" in lines
    assert "then rank 0: RuntimeError: connection closed" in lines and "Traceback of rank 0" not in lines


@pytest.mark.parametrize("seen", [0.9, 1.2])  # which is noted in whole seconds
def test_a_rank_that_was_killed_is_named_before_those_that_lost_it(ended, tmp_path, seen):
    failures = {0: ended(0, 1, "RuntimeError: connection reset", after=0.3), 1: ended(1, -9, after=seen)}
    assert _explain(failures, tmp_path).startswith("rank 1 has failed: ended by SIGKILL\nthen rank 0: RuntimeError")
    assert _explain({2: ended(2, 3)}, tmp_path).startswith("rank 2 has failed: ended with code 3")


def test_a_rank_that_hung_and_was_ended_is_named_after_the_one_that_waited_for_it(ended, tmp_path):
    failures = {0: ended(0, -9, after=0.3 + _processes.GRACE), 1: ended(1, 1, "RuntimeError: Timed out", after=0.3)}
    assert _explain(failures, tmp_path).startswith("rank 1 has failed: RuntimeError: Timed out")


def test_processes_meet_where_no_other_machine_reaches():
    """Planted: a store of torch's own making."""

    def hears(store):
        tables = [file.read_text() for file in Path("/proc/net").glob("tcp*")]
        listening = [line.split()[1] for table in tables for line in table.splitlines() if " 0A " in line]
        return {address for address in listening if address.endswith(f":{store.port:04X}")}

    store = _meeting_point()
    store.set("a", "b")
    assert store.get("a") == b"b" and hears(store) == {f"0100007F:{store.port:04X}"}
    planted = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    assert any(set(address.partition(":")[0]) == {"0"} for address in hears(planted))


@pytest.mark.parametrize("launched", ["", "by torchrun", "by joblib"])
def test_one_of_several_processes_may_be_told_twice_of_one_signal(tmp_path, monkeypatch, launched):
    for name, value in ELASTIC.items() if launched == "by torchrun" else ():
        monkeypatch.setenv(name, value)
    if launched == "by joblib":
        monkeypatch.setattr(multiprocessing, "parent_process", object)
    listener = SaveOnSignal(str(tmp_path))
    listener.waits = True
    before = signal.getsignal(signal.SIGINT)
    with listener.listening():
        signal.raise_signal(signal.SIGINT)
        if launched:
            signal.raise_signal(signal.SIGINT)
            listener._since -= 3
        assert listener.received == signal.SIGINT
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGINT)
            time.sleep(1)
    assert signal.getsignal(signal.SIGINT) == before


def test_processes_are_started_once(configure, monkeypatch):
    config = configure(*DDP_ON_CPU)
    assert needs_processes(build(config).trainer)
    for name, value in ELASTIC.items():  # by torchrun, or by us
        monkeypatch.setenv(name, value)
    assert not needs_processes(build(config).trainer)


def test_one_process_is_not_started(configure):
    for options in ((), ("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=1")):
        assert not needs_processes(build(configure("trainer.accelerator=cpu", *options)).trainer)


def test_batch_norm_is_synchronised_on_gpus_alone(configure):
    config = configure(*DDP_ON_CPU)
    assert config.trainer.sync_batchnorm
    check(config)
    run = build(config)
    assert run.trainer.strategy._layer_sync is None
    with pytest.warns(UserWarning, match="batch norm takes its statistics from the share of each process"):
        warn_of_batch_norm(run.trainer, run.network)
    gpu = Is(strategy=Is(_layer_sync="as it was", root_device=Is(type="cuda")))
    synchronise_batch_norm_on_gpus_only(gpu)
    assert gpu.strategy._layer_sync == "as it was"
