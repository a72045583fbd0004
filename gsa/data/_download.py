"""Files from elsewhere, which get their name once they are the right ones."""

import hashlib
import os
from http.client import HTTPException
from pathlib import Path

from torch.hub import download_url_to_file

__all__ = ["ATTEMPTS", "check_digest", "fetch"]

ATTEMPTS = 3


def fetch(url: str, file: Path, md5: str) -> None:
    """Download under another name, and give the file its own once its digest is right; three times at most.

    Raises:
        ValueError: it did not work out; naming the last reason.
    """
    part = file.with_suffix(".part")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            download_url_to_file(url, str(part))
            check_digest(part, md5)
            os.replace(part, file)
            return
        except (OSError, HTTPException, ValueError) as error:
            if attempt == ATTEMPTS:
                raise ValueError(f"{url} could not be fetched in {ATTEMPTS} attempts; the last one: {error}") from error


def check_digest(file: Path, md5: str) -> None:
    """Raises ValueError unless the file is the one it should be."""
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "md5").hexdigest()
    if found != md5:
        raise ValueError(f"{file} is not the official file: its MD5 should be {md5}, but is {found}; delete it")
