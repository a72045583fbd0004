"""Processes that read pictures for a run, and end with it."""

import copy
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.context import ForkProcess, SpawnProcess
from multiprocessing.queues import Queue
from typing import Any

from torch.utils.data import DataLoader

__all__ = ["leave_signals_to_the_run", "read_once", "sheltered"]

_TOLD = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)


class _Deaf:
    """A process that hears no signal until it has said what to do with it, as it begins with the mask of this one.

    Not by forkserver, whose processes begin with the mask of a server, which serves others, too.
    """

    def start(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _TOLD)
        try:
            super().start()  # type: ignore[misc]  # of a process
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Fork(_Deaf, ForkProcess):
    pass


class _Spawn(_Deaf, SpawnProcess):
    pass


_WAYS = ("fork", "forkserver", "spawn")  # of Python itself; joblib adds its own
_DEAF = {"fork": _Fork, "spawn": _Spawn}


def leave_signals_to_the_run(worker: int, then: Callable[[int], object] | None = None) -> None:
    """Have a worker go on when all processes of a job are told to end, as by terminals, SLURM and torchrun.

    The run that it reads for wants to finish its step and to save; it ends its workers itself, by a SIGTERM of its own.

    Args:
        worker: its number, as a `DataLoader` gives it to its `worker_init_fn`.
        then: what is done in it, too.
    """
    for number in _TOLD:
        if number != signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)
    Queue._on_queue_feeder_error = staticmethod(_end_of)  # type: ignore[attr-defined]
    run = multiprocessing.parent_process()
    heard = set(_TOLD)
    if run is not None and hasattr(signal, "sigwaitinfo"):  # which knows who has sent a signal; not on macOS
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_end_with, args=(run.pid,), daemon=True).start()
        heard.remove(signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
    if then is not None:
        then(worker)


def sheltered(loader: Any) -> Any:
    """Anybody's loader, whose workers do so; one that is no `DataLoader` of PyTorch is left as it is.

    Jobs of joblib start processes in a way of its own, by which PyTorch cannot: from here on in that of the system.
    """
    if isinstance(loader, DataLoader) and loader.num_workers:
        if multiprocessing.get_start_method() not in _WAYS:
            multiprocessing.set_start_method(None, force=True)
        context = loader.multiprocessing_context or multiprocessing.get_context()
        if (way := context.get_start_method()) in _DEAF:
            loader.multiprocessing_context = context = copy.copy(context)
            context.Process = _DEAF[way]  # type: ignore[misc]  # of this one alone
        then = loader.worker_init_fn
        if getattr(then, "func", None) is not leave_signals_to_the_run:  # nor is one that gives the same every time
            loader.worker_init_fn = partial(leave_signals_to_the_run, then=then)
    return loader


def read_once(loader: Any) -> Iterator[Any]:
    """Its batches; of a `DataLoader` that would keep its workers for further epochs, they end with the last one taken.

    Left to the collector of garbage, each is waited for in vain for five seconds.
    """
    try:
        yield from loader
    finally:
        if isinstance(loader, DataLoader):
            loader._iterator = None


def _end_of(error: Exception, batch: Any) -> None:
    """A batch that cannot be handed over is one that the run would wait for without end."""
    reason = " ".join(str(error).split()) or type(error).__name__
    print(
        f"a process that reads pictures cannot hand them over ({reason}): more room in /dev/shm, as by docker run "
        "--shm-size=8g, a short TMPDIR that can be written, or data.num_workers=0",
        file=sys.stderr,
        flush=True,
    )
    os._exit(1)


def _end_with(run: int | None) -> None:
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != run:
        pass
    os._exit(0)
