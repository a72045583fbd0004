"""Signals that are handled otherwise for a while, or until somebody else handles them; how commands end."""

import atexit
import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["end", "end_as_commands_do", "handled"]


@contextmanager
def handled(numbers: Iterable[int], handler: Callable[[int, Any], Any] | signal.Handlers) -> Iterator[None]:
    """While inside, signals go to a handler; not in threads beside the main one, which alone hears them."""
    try:
        before = {number: signal.signal(number, handler) for number in numbers}
    except ValueError:  # not the main thread
        before = {}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def end(number: int, frame: Any = None) -> None:
    """Handle a signal as the system does; in the first process of a container, too, where it does nothing by itself."""
    os._exit(128 + number)


def end_as_commands_do() -> None:
    """Have SIGTERM end the first process of a container, until a run or a server listens to it; and a process that
    has nothing more to do end at once: what libraries have made is not searched for cycles, which takes a second or
    two."""
    if os.getpid() == 1 and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)
    atexit.unregister(gc.freeze)  # of an earlier command of this process
    atexit.register(gc.freeze)
