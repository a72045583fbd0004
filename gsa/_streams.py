"""Where commands print: streams that may be closed, full, or read by nobody any more."""

import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

__all__ = ["note", "open_streams", "outlive_readers", "stop_telling"]


def open_streams() -> None:
    """The null device in the place of streams that are closed, as in services; letters that a terminal lacks escaped.

    Names of files and classes are of any alphabet.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # a file would get their numbers, and what libraries print
        os.set_inheritable(number, True)
    os.close(number)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115  # as long as the process
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def outlive_readers() -> None:
    """Go on when the standard output takes nothing more: its reader has gone, its disk is full, its terminal closed.

    One that something else has put in its place stays.
    """
    out = sys.stdout
    if out is sys.__stdout__ and isinstance(out, TextIOWrapper):
        out.flush()
        raw = _Outliving(out.fileno(), "w", closefd=False)
        buffer: Any = raw if out.write_through else BufferedWriter(raw)
        sys.stdout = TextIOWrapper(
            buffer, out.encoding, out.errors, line_buffering=out.line_buffering, write_through=out.write_through
        )


def stop_telling() -> None:
    """What is printed from here on is for nobody."""
    _to_nobody(sys.stdout.fileno())


def note(text: str) -> None:
    """On the standard error, as long as that takes anything."""
    try:
        print(text, file=sys.stderr)
    except OSError:
        _to_nobody(sys.stderr.fileno())


class _Outliving(FileIO):
    """The null device, from where it takes nothing more."""

    def write(self, content: Any, /) -> Any:
        try:
            return super().write(content)
        except OSError as error:
            _to_nobody(self.fileno())
            note(f"the standard output takes nothing more ({error.strerror}): what follows is printed nowhere")
            return memoryview(content).nbytes


def _to_nobody(number: int) -> None:
    nobody = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nobody, number)
    os.close(nobody)
