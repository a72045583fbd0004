"""The core needs little; what is missing for the rest is named with the extra that brings it."""

__all__ = ["PACKAGE", "not_installed"]

PACKAGE = "gsa-nets"  # on the package index


def not_installed(name: str | None, extra: str = "train") -> ModuleNotFoundError:
    """The error that names a missing package and the command that installs it."""
    return ModuleNotFoundError(f'{name} is not installed: pip install "{PACKAGE}[{extra}]"', name=name)
