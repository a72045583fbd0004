"""Which package an error is of, as its traceback tells."""

import traceback

__all__ = ["comes_from", "comes_through"]


def comes_from(package: str, error: BaseException) -> bool:
    """Whether it was raised there."""
    return _names(error)[-1].startswith(f"{package}.")


def comes_through(package: str, error: BaseException) -> bool:
    """Whether it was raised there, or in what that has called, if that is not of ours again."""
    names = _names(error)
    last = max((place for place, name in enumerate(names) if name.startswith("gsa.")), default=-1)
    return any(name.startswith(f"{package}.") for name in names[last + 1 :])


def _names(error: BaseException) -> list[str]:
    """Modules, each with a dot, from the outermost call to the one that has raised."""
    return [f"{frame.f_globals.get('__name__', '')}." for frame, _ in traceback.walk_tb(error.__traceback__)] or [""]
