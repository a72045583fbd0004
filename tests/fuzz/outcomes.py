"""What becomes of damaged files: each is read in a process of its own, which is given little memory and time."""

import multiprocessing
import resource
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from tests.fuzz.edits import edits

__all__ = ["outcomes"]

_SECONDS = 20  # for one reading
_MEMORY = 1 << 30  # bytes more than what the process begins with


def outcomes(file: Path, read: Callable[[], Any], count: int, seed: int = 0) -> Counter[str]:
    """How often a reader gave what it gave before the damage ("same"), and how often a named error ("refused").

    Args:
        file: damaged `count` times, and whole again in the end.
        read: reads it, perhaps with other files beside it; what comes out is compared by ==.
        count, seed: of the edits.

    Raises:
        AssertionError: any other outcome: another result, another error, one of several lines or one that does not name
            the folder, a process that died, took too long or asked for much memory.
    """
    whole = file.read_bytes()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_watched, args=(sender, file, read, count, seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: none of theirs is used
        process.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        process.join()
        found = f"the reader's process ended with {process.exitcode}"
    process.join()
    damaged = file.read_bytes()
    file.write_bytes(whole)
    assert isinstance(found, Counter), f"{file.name}, {len(damaged)} bytes, {damaged[:64].hex()} …: {found}"
    return found


def _watched(sender: Connection, file: Path, read: Callable[[], Any], count: int, seed: int) -> None:
    torch.set_num_threads(1)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, whatever it does
    try:
        sender.send(_count(file, read, count, seed))
    except BaseException:
        sender.send(traceback.format_exc())


def _count(file: Path, read: Callable[[], Any], count: int, seed: int) -> Counter[str]:
    before, found = read(), Counter[str]()
    for damaged in edits(file.read_bytes(), count, seed):
        file.write_bytes(damaged)
        signal.alarm(_SECONDS)
        try:
            after = read()
        except (ValueError, FileNotFoundError) as error:
            text = str(error)
            assert str(file.parent) in text and "\n" not in text and "\x1b" not in text, text
            found["refused"] += 1
        else:
            assert after == before, f"{after} instead of {before}"
            found["same"] += 1
        signal.alarm(0)
    return found
