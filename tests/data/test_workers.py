"""Workers leave signals to the run that they read for, and end with it."""

import multiprocessing
import os
import signal
import subprocess

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from gsa.data._workers import leave_signals_to_the_run, sheltered

pytestmark = pytest.mark.skipif(not hasattr(signal, "sigwaitinfo"), reason="who has sent a signal is not known here")


class Told(Dataset):
    """A signal comes from another process while the first picture is read; gives what environment variable SET says."""

    def __init__(self, number):
        self.number = number

    def __len__(self):
        return 2

    def __getitem__(self, index):
        if index == 0 and self.number is not None:
            subprocess.run(f"kill -{int(self.number)} {os.getpid()}", shell=True)
        return int(os.environ.get("SET", 0))


def set_variable(worker):
    os.environ["SET"] = "7"


def read(number, shelter, **options):
    return torch.cat(list(shelter(DataLoader(Told(number), num_workers=1, **options)))).tolist()


@pytest.fixture
def heard():
    """Ctrl-C is heard in this process, as it is not in one that a shell has put into the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_worker_that_is_told_to_end_goes_on(heard, number):
    """Planted: it ends, and the loader fails."""
    assert read(number, sheltered, worker_init_fn=set_variable) == [7, 7]
    assert read(None, sheltered) == [0, 0]
    with pytest.raises(RuntimeError, match="DataLoader worker"):
        read(number, lambda loader: loader)


def test_a_loader_is_sheltered_once():
    loader = DataLoader(Told(None), num_workers=1, worker_init_fn=set_variable)
    assert sheltered(sheltered(loader)).worker_init_fn.keywords == {"then": set_variable}
    assert sheltered(DataLoader(Told(None))).worker_init_fn is None and sheltered("another") == "another"


def test_jobs_of_joblib_start_workers_in_the_way_of_the_system(monkeypatch):
    """Planted: by theirs, none starts."""
    pytest.importorskip("joblib.externals.loky")
    way = multiprocessing.get_start_method()
    multiprocessing.set_start_method("loky", force=True)
    try:
        with pytest.raises(Exception, match="loky|start a worker"):
            read(None, lambda loader: loader)
        assert read(None, sheltered) == [0, 0] and multiprocessing.get_start_method() != "loky"
    finally:
        multiprocessing.set_start_method(way, force=True)
    loader = sheltered(DataLoader(Told(None), num_workers=1, multiprocessing_context="spawn"))
    assert loader.multiprocessing_context.get_start_method() == "spawn"


@pytest.mark.parametrize("is_ours", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_worker_that_is_told_to_end_as_it_starts_goes_on(monkeypatch, is_ours):
    """It takes seconds until a spawned one could say that it does not hear; planted: it ends."""
    pids = []

    def start(process, start=multiprocessing.process.BaseProcess.start):
        start(process)
        pids.append(process.pid)
        subprocess.run(f"kill -TERM {process.pid}; kill -USR1 {process.pid}", shell=True)

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", start)
    if is_ours:
        assert read(None, sheltered, multiprocessing_context="spawn") == [0, 0] and len(pids) == 1
    else:
        with pytest.raises(RuntimeError, match="DataLoader worker"):
            read(None, lambda loader: loader, multiprocessing_context="spawn")


class Held(Dataset):
    """Batches that no other process can be given, as where shared memory is full."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return lambda: None


def test_a_batch_that_cannot_be_handed_over_is_not_waited_for(capfd):
    """Planted: PyTorch does, without end."""
    alone = {"num_workers": 1, "collate_fn": list, "multiprocessing_context": "fork"}
    with pytest.raises(RuntimeError, match="DataLoader worker .* exited unexpectedly"):
        list(sheltered(DataLoader(Held(), **alone)))
    assert "cannot hand them over (" in (told := capfd.readouterr().err) and "--shm-size=8g" in told
    with pytest.raises(RuntimeError, match="timed out after 2"):
        list(DataLoader(Held(), timeout=2, **alone))


def wait(ready):
    leave_signals_to_the_run(0)
    ready.set()
    signal.pause()


@pytest.mark.parametrize("way", ["fork", "forkserver"])  # of the second, the run is not what has started the worker
def test_a_worker_ends_when_its_run_says_so(way):
    context = multiprocessing.get_context(way)
    ready = context.Event()
    worker = context.Process(target=wait, args=(ready,), daemon=True)
    worker.start()
    assert ready.wait(60)
    subprocess.run(f"kill -TERM {worker.pid}", shell=True)
    worker.join(0.5)
    assert worker.is_alive()
    worker.terminate()
    worker.join(10)
    assert worker.exitcode == 0
