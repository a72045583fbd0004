"""JSON files that carry a digest of what they say, and of a file beside them."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from gsa.files._text import one_line

__all__ = ["read_signed", "signed"]

_DIGEST = re.compile(r"[0-9a-f]{64}")


def signed(values: dict[str, Any], beside: bytes = b"") -> bytes:
    """The content of such a file: its values, and "sha256" over them and the content of the file beside it."""
    return (json.dumps(values | {"sha256": _digest(values, beside)}, indent=2) + "\n").encode()


def read_signed(path: Path, beside: bytes = b"") -> tuple[dict[str, Any], bool]:
    """The values of such a file, and whether they came with a digest; one that is there has been compared.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no values under names, or others than were written.
    """
    content = path.read_bytes()
    try:
        values = json.loads(content)
        if not isinstance(values, dict):
            raise ValueError(f"expected values under names, but got {type(values).__name__}")
        written = values.pop("sha256", None)
        actual = _digest(values, beside)
    except (ValueError, RecursionError) as error:  # of its text, its nesting, or the length of its numbers
        raise ValueError(f"{path} is damaged: {one_line(error)}") from error
    if written is None and any(isinstance(value, str) and _DIGEST.fullmatch(value) for value in values.values()):
        raise ValueError(f"{path} is damaged: there is a digest in it under another name")
    if written is not None and written != actual:
        both = " or what stands beside it" if beside else ""
        raise ValueError(f"{path}{both} has changed; expected the digest {str(written)[:64]!a}, but got {actual}")
    return values, written is not None


def _digest(values: dict[str, Any], beside: bytes) -> str:
    """SHA-256 of the values, whatever their layout, and of the other file."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode() + beside).hexdigest()
