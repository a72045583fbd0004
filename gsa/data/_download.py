"""Files from elsewhere, which are written once they are the right ones, by one process at a time."""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from filelock import FileLock

from gsa.files import remove_leftovers, write_whole

__all__ = ["ATTEMPTS", "alone_in", "check_digest", "fetch"]

ATTEMPTS = 3
STALL = 60.0  # seconds without a byte
SLOWEST = 1000  # bytes a second; a server that is slower is given up as well


@contextmanager
def alone_in(root: Path) -> Iterator[None]:
    """One process at a time prepares what is in a folder; others wait, and what a dead one has left is removed.

    Raises:
        ValueError: a folder that cannot be written.
    """
    root.mkdir(parents=True, exist_ok=True)
    if not os.access(root, os.W_OK):
        raise ValueError(f"{root} must be a folder that can be written, because data are prepared in it once")
    with FileLock(root / ".download.lock"):  # the system takes it back from an owner that has died
        remove_leftovers(root)
        yield


def fetch(url: str, file: Path, md5: str, most: int) -> None:
    """Download, and write the file once its digest is right; three times at most.

    An http address is tried with https first. Nothing is done with the bytes before their digest, so it does not matter
    who sends them.

    Args:
        url: http or https.
        file: what is written.
        md5: of the file.
        most: bytes that are received at most.

    Raises:
        ValueError: it did not work out; naming the last reason.
    """
    secure = url.replace("http://", "https://", 1)
    for attempt in range(1, ATTEMPTS + 1):
        for address in dict.fromkeys((secure, url)):
            try:
                content = _received(address, most)
                _compare(url, hashlib.md5(content).hexdigest(), md5)
            except (OSError, HTTPException, ValueError) as error:
                if attempt == ATTEMPTS and address == url:
                    raise ValueError(
                        f"{url} could not be fetched in {ATTEMPTS} attempts; the last one: {error}"
                    ) from error
            else:
                write_whole(file, content)
                return


def check_digest(file: Path, md5: str) -> None:
    """Raises ValueError unless the file is the one it should be."""
    with file.open("rb") as stream:
        _compare(file, hashlib.file_digest(stream, "md5").hexdigest(), md5, "; delete it")


def _received(address: str, most: int) -> bytes:
    content, begun = bytearray(), time.monotonic()
    with urlopen(Request(address, headers={"User-Agent": "gsa"}), timeout=STALL) as response:
        while some := response.read1(1 << 16):
            content += some
            if len(content) > most:
                raise ValueError(f"more than {most:,} bytes were sent")
            if time.monotonic() - begun > STALL + len(content) / SLOWEST:
                raise TimeoutError(f"only {len(content):,} bytes were sent in {STALL:g} seconds")
    return bytes(content)


def _compare(name: object, found: str, md5: str, advice: str = "") -> None:
    if found != md5:
        raise ValueError(f"{name} is not the official file: its MD5 should be {md5}, but is {found}{advice}")
