"""What is made of our sources alone, kept between commands, which then answer without PyTorch."""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gsa.files import write_whole

__all__ = ["kept"]

_PACKAGE = Path(__file__).parent


def kept(name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `make` returns, from a file where it has been made of the very same sources before.

    Args:
        name: of the file in ~/.cache/gsa (or $XDG_CACHE_HOME/gsa).
        make: a function of the networks in `gsa.models`, plain values under names. It is always called where these are
            imported already: somebody may have added some.
    """
    if "gsa.models" in sys.modules:
        return make()
    file = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "gsa" / f"{name}.json"
    of = _digest_of_sources()
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):  # none yet, or a damaged one
        found = json.loads(file.read_bytes())
        if found["of"] == of:
            return found["made"]
    made = make()
    with suppress(OSError):  # made again every time
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps({"of": of, "made": made}).encode())
    return made


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(f"{path.relative_to(_PACKAGE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()
