"""Every file of a data set, looked at once before anything is trained on it."""

import hashlib
import os
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track

from gsa.files import printable
from gsa.files.pictures import has_pages, read_picture

__all__ = ["Seen", "look_at", "warn_of_stacks"]

_SHOWN = 5  # files of a warning


@dataclass(frozen=True)
class Seen:
    """What a file holds.

    Attributes:
        unread: why it cannot be read as a picture; None where it can.
        content: SHA-256 of its bytes; that of no other file where it cannot be read.
        has_pages: whether it is a stack, of which the first page is read.
    """

    unread: str | None
    content: str
    has_pages: bool = False


def look_at(paths: Sequence[str], size: int) -> dict[str, Seen]:
    """Read every file, several at a time, with a progress bar: path → what it holds."""
    console = Console(stderr=True)
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # decoders let other threads work
        found = track(
            threads.map(lambda path: _seen(path, size), paths),
            "looking at all pictures",
            total=len(paths),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        return dict(zip(paths, found, strict=True))


def warn_of_stacks(paths: Iterable[str]) -> None:
    """Count the files of which only the first page is read, where there are any."""
    if stacks := sorted(paths):
        named = ", ".join(printable(Path(path).name) for path in stacks[:_SHOWN])
        more = ", …" if len(stacks) > _SHOWN else ""
        warnings.warn(
            f"files with several pages, of which the first is read ({len(stacks)}): {named}{more}", stacklevel=2
        )


def _seen(path: str, size: int) -> Seen:
    try:
        read_picture(path, "RGB", size)
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except ValueError as error:
        return Seen(str(error), path)
    return Seen(None, content, has_pages(path))
