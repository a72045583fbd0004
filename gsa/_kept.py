"""What is made of our sources alone, kept between commands, which then answer without PyTorch."""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gsa.files import write_whole

__all__ = ["kept"]

_PACKAGE = Path(__file__).parent
_TOLD_BY = ("torch", "lightning")


def kept(name: str, make: Callable[[], dict[str, Any]], of: str) -> dict[str, Any]:
    """What `make` returns, from a file where it has been made of the very same sources before.

    Args:
        name: of the file in ~/.cache/gsa (or $XDG_CACHE_HOME/gsa).
        make: plain values under names, told by the module `of`. It is always called where that is imported already:
            it takes no time then, and somebody may have added to it.
    """
    if of in sys.modules:
        return make()
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # as it is, of users without a home
    if home.startswith("~"):
        return make()
    file = Path(home) / "gsa" / f"{name}.json"
    digest = _digest_of_sources()
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):  # none yet, or a damaged one
        found = json.loads(file.read_bytes())
        if found["of"] == digest:
            return found["made"]
    made = make()
    with suppress(OSError):  # made again every time
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps({"of": digest, "made": made}).encode())
    return made


def _digest_of_sources() -> str:
    """Of ours, and of the versions of those that ours are told by."""
    digest = hashlib.sha256()
    for package in _TOLD_BY:
        with suppress(PackageNotFoundError):
            digest.update(f"{package} {version(package)}\n".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(f"{path.relative_to(_PACKAGE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()
