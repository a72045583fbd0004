"""Signals that are handled otherwise for a while."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["handled"]


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
