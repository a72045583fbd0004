"""The folder of a run, in which one process works at a time."""

import fcntl
import os
import socket
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from gsa.files import remove_leftovers
from gsa.runner._quoted import folder_keys
from gsa.runner._schema import ConfigError

__all__ = [
    "Busy",
    "TakenAway",
    "held",
    "held_by",
    "in_place",
    "is_held",
    "refuse_among_classes",
    "refuse_unwritable_folder",
]

_held: dict[Path, IO] = {}  # by this process


class Busy(ConfigError):
    """Another process is at work in the folder of a run."""


class TakenAway(OSError):
    """The folder of a run is no longer where it was; what stands there is another."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Nobody else works in a folder while inside; the system takes it back from a process that has died.

    One that does not exist, or that cannot be written, is let be: nobody is at work there.

    Raises:
        Busy: somebody else holds it.
    """
    folder = folder.absolute()
    if folder in _held or not folder.is_dir() or not os.access(folder, os.W_OK):
        yield
        return
    with _opened(folder / ".lock") as file:
        _lock(file, folder)
        for place in (folder, folder / "checkpoints"):
            remove_leftovers(place)
        _held[folder] = file
        try:
            yield
        finally:
            del _held[folder]


@contextmanager
def in_place(folder: Path) -> Iterator[Callable[[], None]]:
    """What looks whether a folder is still the one that it is now, before more is written there.

    Of two runs, each in a folder of its own by one name, the earlier would else write into that of the later.

    Raises:
        TakenAway: when it is called, and the folder was removed, moved, or replaced.
    """
    mark = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # while it is open, no other folder is taken for this one

    def look() -> None:
        if not (folder.is_dir() and os.path.samestat(folder.stat(), os.fstat(mark))):
            raise TakenAway(
                f"{folder} was removed, moved or replaced while its run was at work in it, which writes nothing more "
                "there; if it was moved, the run goes on from where it stands now, with ckpt_path=auto"
            )

    try:
        yield look
    finally:
        os.close(mark)


def held_by(processes: Iterable[int], folder: Path) -> list[Path]:
    """The folders in a folder that other processes of this machine hold."""
    holders = set(map(_holder, processes))
    locks = folder.rglob(".lock")
    return [lock.parent for lock in locks if lock.read_text() in holders and is_held(lock.parent)]


def is_held(folder: Path) -> bool:
    """Whether another process holds it; where the file system has no locks, nobody does."""
    with _own(folder / ".lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return False


def refuse_among_classes(data: Mapping[str, Any], folder: str | os.PathLike[str]) -> None:
    """What a run or a sweep leaves in a folder of pictures would be a class of the next run.

    Args:
        data: their configuration.
        folder: of the run or sweep.

    Raises:
        ConfigError: it is in the folder of the pictures, and not hidden.
    """
    if data["_target_"] != "gsa.data.ImageFolderDataModule" or data.get("labels") is not None:
        return
    root, place = Path(data.get("root", "data")).resolve(), Path(folder).resolve()
    below = place.relative_to(root).parts if place.is_relative_to(root) else (".",)
    if not (below and below[0].startswith(".")):
        raise ConfigError(
            f"a run's folder must not be in data.root, where every folder is a class, but is {place}: start the "
            f"command elsewhere, or choose another folder ({folder_keys()})"
        )


def refuse_unwritable_folder(folder: Path) -> None:
    """Look whether a run can write into its folder, before anything is written.

    Raises:
        ConfigError: it or what stands in its place is not a folder, or is read-only; a file in it is a link, through
            which something else would be written.
    """
    for file in (*folder.glob("*"), *folder.glob(".hydra/*")):
        if file.is_symlink() and not file.is_dir():
            raise _is_link(file)
    for place in (folder.absolute(), folder.absolute() / "checkpoints"):
        standing = next(part for part in (place, *place.parents) if part.exists())
        if not (standing.is_dir() and os.access(standing, os.W_OK | os.X_OK)):
            raise ConfigError(f"output_dir must be a folder that can be written, but {standing} is not")


def _opened(lock: Path) -> IO:
    try:
        return _own(lock)
    except PermissionError:
        if lock.stat().st_uid == os.geteuid():
            raise ConfigError(f"output_dir must be a folder that can be written, but {lock} is not") from None
        raise ConfigError(
            f"the run in {lock.parent} is of another user ({lock.stat().st_uid}), and this one ({os.geteuid()}) cannot "
            "write what is in it: go on as that user, or make all of it writable (umask 002 before it begins)"
        ) from None


def _own(lock: Path) -> IO:
    """The file itself, made if it is not there; what a link leads to is somebody else's."""
    if lock.is_symlink():
        raise _is_link(lock)
    return os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666), "a+")


def _is_link(file: Path) -> ConfigError:
    return ConfigError(f"the files of a run are its own, but {file} is a link to {os.readlink(file)}: take it away")


def _lock(file: IO, folder: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        raise Busy(
            f"another process ({file.read(200) or 'unknown'}) is at work on the run in {folder}: wait for it, or take "
            "another folder"
        ) from None
    except OSError as error:
        warnings.warn(f"{folder} cannot be locked against a second run, {error.strerror}", stacklevel=4)
        return
    file.truncate(0)
    file.write(_holder(os.getpid()))
    file.flush()


def _holder(process: int) -> str:
    return f"{process} on {socket.gethostname()}"


def _let_go() -> None:
    """Workers that load data are copies of a process: what they hold would outlive it."""
    for file in _held.values():
        file.close()
    _held.clear()


os.register_at_fork(after_in_child=_let_go)
