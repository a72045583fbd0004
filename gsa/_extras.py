"""The core needs little; what is missing for the rest is named with the extra that brings it."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["PACKAGE", "brought_by", "not_installed"]

PACKAGE = "gsa-nets"  # on the package index
_OF_POSIX = ("fcntl", "resource")  # parts of Python itself


def not_installed(name: str | None, extra: str = "train") -> ModuleNotFoundError:
    """The error that names a missing package and the command that installs it."""
    return ModuleNotFoundError(f'{name} is not installed: pip install "{PACKAGE}[{extra}]"', name=name)


@contextmanager
def brought_by(extra: str) -> Iterator[None]:
    """Around imports: what they miss is named with the extra that brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name in _OF_POSIX:
            needs = f"this needs Linux or macOS, on Windows WSL, as there is no {error.name} here"
            raise ModuleNotFoundError(needs, name=error.name) from error
        raise not_installed(error.name, extra) from error
