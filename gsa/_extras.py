"""The core needs little; what is missing for the rest is named with the extra that brings it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["PACKAGE", "brought_by", "not_installed"]

PACKAGE = "gsa-nets"  # on the package index


def not_installed(name: str | None, extra: str = "train") -> ModuleNotFoundError:
    """The error that names a missing package and the command that installs it."""
    return ModuleNotFoundError(f'{name} is not installed: pip install "{PACKAGE}[{extra}]"', name=name)


@contextmanager
def brought_by(extra: str) -> Iterator[None]:
    """Around imports: what they miss is named with the extra that brings it."""
    try:
        yield
    except ImportError as error:
        if str(error.name).partition(".")[0] in sys.stdlib_module_names:
            raise ImportError(f"this needs Linux or macOS, on Windows WSL, as there is no {error.name} here") from error
        if isinstance(error, ModuleNotFoundError):
            raise not_installed(error.name, extra) from error
        raise
