"""Every file of a data set, looked at once before anything is trained on it."""

import hashlib
import os
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from rich.console import Console
from rich.progress import track

from gsa.files import printable
from gsa.files.pictures import has_pages, has_transparency
from gsa.files.reading import PictureReader

__all__ = ["Seen", "look_at", "warn_of_dark_files", "warn_of_files"]

_SHOWN = 5  # files of a warning
_DARK = 4  # times below what a file could hold, where two of its bits or more are never used


@dataclass(frozen=True)
class Seen:
    """What a file holds.

    Attributes:
        unread: why it cannot be read as a picture; None where it can.
        content: SHA-256 of its bytes; that of no other file where it cannot be read.
        more_pages: whether it is a stack, of which only the first page is read.
        has_transparency: whether a pixel is not opaque, of which the colour beneath is read.
        brightest: its largest number and the largest that it could hold, where these have more than 8 bits; of every
            page that is read.
    """

    unread: str | None
    content: str
    more_pages: bool = False
    has_transparency: bool = False
    brightest: Sequence[tuple[int, int] | None] = ()


def look_at(paths: Sequence[str], read: PictureReader) -> dict[str, Seen]:
    """Read every file, several at a time, with a progress bar: path → what it holds."""
    console = Console(stderr=True)
    with ThreadPoolExecutor(_cores()) as threads:  # decoders let other threads work
        found = track(
            threads.map(lambda path: _seen(path, read), paths),
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


def warn_of_dark_files(seen: Iterable[Seen], white: int | Sequence[int] | None) -> None:
    """Compare the largest of all numbers of more than 8 bits, where there are any, with what is taken for white.

    Of files that are read page by page, each page with what is white in it.
    """
    files = [one.brightest for one in seen if any(one.brightest)]
    if not files:
        return
    pages = [[pair for pair in page if pair is not None] or [(255, 255)] for page in zip(*files, strict=True)]
    found = [max(page, key=lambda pair: pair[0] / pair[1]) for page in pages]
    largest, most = [value for value, _ in found], max(value for _, value in found)
    used = f"files of more than 8 bits ({len(files)}) use values up to {_listed(largest)} of {most}"
    whites = white if isinstance(white, Sequence) else [white] * len(found)
    if any(lightest is not None and value > lightest for value, lightest in zip(largest, whites, strict=True)):
        warnings.warn(f"{used}: those above data.white={_listed(whites)} are all white", stacklevel=2)
    elif white is None and any(value * _DARK <= held for value, held in found):
        enough = _listed([2 ** max(value.bit_length(), 1) - 1 for value in largest])
        warnings.warn(
            f"{used} only, so that pictures come out dark and coarse: data.white={enough} makes {enough} white",
            stacklevel=2,
        )


def _listed(values: Sequence[int | None]) -> str:
    """One number, or those of several pages as they are written on a command line."""
    return str(values[0]) if len(values) == 1 else f"[{','.join(map(str, values))}]"


def _cores() -> int | None:
    """Those that this process may use: a container or a job has fewer than the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _seen(path: str, read: PictureReader) -> Seen:
    try:
        read(path)
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except ValueError as error:
        return Seen(str(error), path)
    if read.reads_pages:
        return Seen(None, content, brightest=read.brightest(path))
    return Seen(None, content, has_pages(path), has_transparency(path), read.brightest(path))
