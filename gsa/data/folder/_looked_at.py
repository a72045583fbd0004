"""Every file of a data set, looked at once before anything is trained on it."""

import hashlib
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from rich.console import Console
from rich.progress import track

from gsa.data._kept import KeptPictures
from gsa.files import printable
from gsa.files.pictures import has_pages, has_transparency, is_long

__all__ = ["Seen", "listed_reasons", "look_at", "warn_of_files"]

_SHOWN = 5  # files of a warning
_NAMED = 20  # files that cannot be read, or reasons


@dataclass(frozen=True)
class Seen:
    """What a file holds.

    Attributes:
        unread: why it cannot be read as a picture; None where it can.
        content: SHA-256 of its bytes; that of no other file where it cannot be read.
        more_pages: whether it is a stack, of which only the first page is read.
        is_long: whether half of it lies outside its central square.
        has_transparency: whether a pixel is not opaque, of which the colour beneath is read.
        has_dark_numbers: whether it has colours of 16 bits or floating numbers, most of which are not used.
        brightest: its largest number and the largest that it could hold, where these have more than 8 bits; of every
            page that is read.
    """

    unread: str | None
    content: str
    more_pages: bool = False
    is_long: bool = False
    has_transparency: bool = False
    has_dark_numbers: bool = False
    brightest: Sequence[tuple[int, int] | None] = ()


def look_at(paths: Sequence[str], pictures: KeptPictures) -> dict[str, Seen]:
    """Read every file, several at a time, with a progress bar: path → what it holds."""
    console = Console(stderr=True)
    with ThreadPoolExecutor(_cores()) as threads:  # decoders let other threads work
        found = track(
            threads.map(lambda path: _seen(path, pictures), paths),
            "looking at all pictures",
            total=len(paths),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        return dict(zip(paths, found, strict=True))


def warn_of_files(what: str, paths: Iterable[str], root: str | os.PathLike[str]) -> None:
    """Count the files of which that is true, where there are any, with their paths below a folder."""
    if found := sorted(paths):
        named = ", ".join(printable(os.path.relpath(path, root)) for path in found[:_SHOWN])
        more = ", …" if len(found) > _SHOWN else ""
        warnings.warn(f"files with {what} ({len(found)}): {named}{more}", stacklevel=2)


def listed_reasons(reasons: Mapping[str, str], root: str | os.PathLike[str]) -> str:
    """Path → why it cannot be read: lines for each reason, with the first file that has it, and others below root."""
    alike: dict[str, list[str]] = {}
    for path, reason in reasons.items():
        alike.setdefault(reason.replace(printable(path), "", 1), []).append(path)
    lines = []
    for first, *others in alike.values():
        named = ", ".join(printable(os.path.relpath(path, root)) for path in others[:_NAMED])
        more = ", …" if len(others) > _NAMED else ""
        lines.append(f"\n  {reasons[first]}" + (f"\n    and {len(others)} more: {named}{more}" if others else ""))
    more = f"\n  … and for {len(lines) - _NAMED} other reasons" if len(lines) > _NAMED else ""
    return "".join(lines[:_NAMED]) + more


def _cores() -> int | None:
    """Those that this process may use: a container or a job has fewer than the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _seen(path: str, pictures: KeptPictures) -> Seen:
    read = pictures.read
    try:
        pictures(path)
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except ValueError as error:
        return Seen(str(error), path)
    seen = Seen(
        None,
        content,
        is_long=is_long(path),
        has_dark_numbers=read.has_dark_numbers(path),
        brightest=read.brightest(path),
    )
    if read.reads_pages:
        return seen
    return replace(seen, more_pages=has_pages(path), has_transparency=has_transparency(path))
