"""Files that are written whole or not at all."""

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

__all__ = ["refuse_unwritable", "remove_leftovers", "write_whole"]

_MOST = 50  # letters of a name, of up to 4 bytes, for one beside it that is no longer than systems allow


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write beside the target, look at what is on the disk, then rename; what stood there stays until then.

    The file beside it is new and has a name that nobody else uses, so neither a link nor a second writer is in the way.

    Raises:
        OSError: what the disk says; a folder or a device, which nothing is to stand in the place of.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "is there, and is no file that could be replaced", str(path))
    part = path.with_name(f".{path.name[:_MOST]}.{secrets.token_hex(4)}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if part.read_bytes() != content:
            raise OSError("what was written is not what can be read back")
        os.replace(part, path)
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)  # which was asked for, not the one beside it
        raise
    finally:
        with suppress(OSError):  # which would hide what has gone wrong
            part.unlink()


def refuse_unwritable(what: str, path: Path) -> None:
    """Before the work whose results `write_whole` is to write there.

    Raises:
        ValueError: a folder or a device, or a folder that is not there or cannot be written.
    """
    if (path.exists() and not path.is_file()) or not os.access(path.absolute().parent, os.W_OK):
        raise ValueError(f"{what} must be a file in a folder that can be written, but got {path}")


def remove_leftovers(folder: Path) -> None:
    """Remove what writers that were killed have left; only while nobody else writes there."""
    for part in folder.glob(".*.part"):
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """So that the new name outlives a power cut."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):  # of file systems that cannot
                raise
        finally:
            os.close(handle)
