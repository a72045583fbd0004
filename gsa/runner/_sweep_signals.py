"""What lets the jobs of a sweep outlive a signal to the process that leads it, where they run in others."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gsa._handled import end
from gsa._streams import note
from gsa.runner._folder import held_by, is_held

__all__ = ["let_jobs_save"]


def let_jobs_save(folder: Path, then: Callable[[int], object]) -> None:
    """From here on, Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP wait for the jobs that are at work in the folder of a sweep.

    Ctrl-C reaches them by itself, the others are passed on; they save and stop, and no other begins: launchers would
    kill the rest as soon as one has stopped. A second signal stops at once, but for a
    SIGTERM after SIGUSR1, which SLURM sends to a job that is queued again.

    Args:
        folder: of the sweep.
        then: what is done with the signal when they have saved.
    """

    def wait(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for other in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(other, end)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # terminals say it twice
        if number == signal.SIGUSR1:  # SLURM's SIGTERM follows, if another run of the job has it queued again
            signal.signal(signal.SIGTERM, lambda *_: signal.signal(signal.SIGTERM, end))
        jobs = {job.pid for job in multiprocessing.active_children() if job.pid is not None}
        saving = held_by(jobs, folder)
        if saving:
            note("waiting until the jobs at work have saved; a second signal stops at once")
        if number != signal.SIGINT:
            _send(number, jobs)
        while any(map(is_held, saving)):
            time.sleep(0.1)
        _send(signal.SIGKILL, jobs)  # which begin the next ones already
        then(number)
        raise SystemExit(128 + number)

    if threading.current_thread() is threading.main_thread():  # which alone may listen
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, wait)
        if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
            signal.signal(signal.SIGHUP, wait)


def _send(number: int, processes: set[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)
