"""Checkpoints that are written whole or not at all, carry their digest, and are read without running code in them."""

import errno
import hashlib
import io
import os
import pickle
import pickletools
import re
import shutil
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch

from gsa._version import VERSION
from gsa.files import one_line, write_whole

__all__ = ["newest_checkpoint", "read_checkpoint", "write_checkpoint"]

_MOST_VALUES = 10**6  # in a checkpoint, a tensor being one
_DEEPEST = 100
_READ_AGAIN: set[frozenset[str]] = set()  # what files call for that were written here, and could be read again
_MARK = b"\nsha256:"  # and 64 hexadecimal digits: behind the archive, where torch.load does not look


def write_checkpoint(checkpoint: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write beside the target with a digest, look at what is on the disk, then rename: all of it or nothing.

    Whether it could be read again is tried before, once for all that are made of the same kinds of values, as those of
    the epochs of a run are.

    Raises:
        ValueError: something that `read_checkpoint` would refuse.
        OSError: what the disk says, with the bytes that were needed and those that are free.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = io.BytesIO()
    torch.save(checkpoint | {"gsa_version": VERSION}, stream)
    content = stream.getvalue()
    try:
        called = _called(content)
        if called not in _READ_AGAIN:
            _plain(content, "cpu")
        _refuse_unfolding(checkpoint)
        _READ_AGAIN.add(called)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} would hold more than tensors and plain values, {_foreign(error)}, and could not be read again; "
            "give hyperparameters and the states of callbacks as numbers, texts, lists and dictionaries"
        ) from error
    except ValueError as error:
        raise ValueError(f"{path} could not be read again: {error}; give states of callbacks without it") from error
    content += _MARK + hashlib.sha256(content).hexdigest().encode()
    try:
        write_whole(path, content)
    except OSError as error:
        how = "look at what the system lets you write (ulimit -f, quota)"
        if error.errno == errno.ENOSPC:
            how = "free some space"
        raise OSError(
            error.errno,
            f"{error.strerror or error}: {path} needs {len(content):,} bytes, "
            f"{shutil.disk_usage(path.parent).free:,} are free; "
            f"{'the previous one is as it was' if path.exists() else 'nothing of it was kept'}; {how}, and "
            "ckpt_path=auto goes on with what is there",
        ) from error


def read_checkpoint(path: str | os.PathLike[str], map_location: Any = "cpu") -> dict[str, Any]:
    """Tensors and plain values of a checkpoint; anything that would run code on loading is refused.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file whose content does not have the digest at its end, that is not a whole checkpoint, or that
            holds more than tensors and plain values.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no checkpoint at {path}")
    content = _verified(path)
    try:
        _called(content)
        checkpoint = _plain(content, map_location)
        _refuse_unfolding(checkpoint)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} holds more than tensors and plain values and was not loaded, because that could run code: "
            f"{one_line(error)}"
        ) from error
    except Exception as error:  # of the archive, of the values in it, of the tensors made of them
        raise ValueError(f"{path} is not a whole checkpoint: {one_line(error)}") from error
    if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get("state_dict"), dict):
        raise ValueError(f"{path} is not a checkpoint of a run: it has no state_dict")
    return checkpoint


def newest_checkpoint(folder: str | os.PathLike[str]) -> tuple[Path | None, list[str]]:
    """The checkpoint with the most steps among those in a folder that are whole, and what is wrong with the others."""
    found, damaged = [], []
    for path in sorted(Path(folder).glob("*.ckpt")):
        try:
            steps = read_checkpoint(path).get("global_step", 0)
            found.append((steps if isinstance(steps, int) else 0, path.name == "last.ckpt", path))
        except ValueError as error:
            damaged.append(str(error))
    return (max(found)[-1] if found else None), damaged


def _foreign(error: pickle.UnpicklingError) -> str:
    """What torch has met, in its many lines."""
    met = re.search(r"GLOBAL ([\w.]+)", str(error))
    return f"such as {met[1]}" if met else one_line(error)


def _plain(content: bytes, map_location: Any) -> Any:
    """Tensors and plain values, or an error; what torch warns of before, that error says."""
    with warnings.catch_warnings():
        for message in ("Detected pickle protocol", "Validating sparse tensor invariants"):
            warnings.filterwarnings("ignore", message)
        return torch.load(io.BytesIO(content), map_location=map_location, weights_only=True)


def _verified(path: str | os.PathLike[str]) -> bytes:
    """The content without its digest, which it has been compared with."""
    content, mark, digest = Path(path).read_bytes().rpartition(_MARK)
    if not mark or len(digest) != 64:
        raise ValueError(
            f"{path} is not a whole checkpoint: it does not end with its digest, which "
            "gsa.training.SafeCheckpointIO writes, a plugin of the Trainer (weights alone, as torch.save writes a "
            "state_dict, are for network.load_state_dict(torch.load(path, weights_only=True)))"
        )
    actual = hashlib.sha256(content).hexdigest()
    if actual.encode() != digest:
        raise ValueError(
            f"{path} is not a whole checkpoint: its content has changed; expected the digest "
            f"{digest.decode(errors='replace')}, but got {actual}"
        )
    return content


def _called(content: bytes) -> frozenset[str]:
    """What reading it calls for: codes of pickle, and what they name.

    A small file is not to become a large one: neither by records that are packed, nor by values that are made of a
    number, as bytearray and codecs make much of little. (As words, both may stand in it.)

    Raises:
        ValueError: such a file.
        zipfile.BadZipFile: no archive.
    """
    called: set[str] = set()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        records = archive.infolist()
        if sum(record.file_size for record in records) > len(content):
            raise ValueError("its records are larger than the file")
        if len({record.filename.lower() for record in records}) < len(records):  # torch finds them whatever their case
            raise ValueError("it has two records of one name")
        for record in records:
            if record.filename.lower().endswith("data.pkl"):
                codes = pickletools.genops(archive.read(record))
                called |= {f"GLOBAL {named}" if code.name == "GLOBAL" else code.name for code, named, _ in codes}
    if any(name == "STACK_GLOBAL" or name.startswith("GLOBAL _codecs ") or name.endswith(" bytearray")
           for name in called):  # fmt: skip
        raise ValueError("it holds bytes, which no checkpoint of a run does")  # torch writes no STACK_GLOBAL
    return frozenset(called)


def _refuse_unfolding(checkpoint: Any) -> None:
    """Dictionaries and lists that hold one another again and again are more than whoever walks through them can see.

    Raises:
        ValueError: such a checkpoint.
    """
    counted: dict[int, int] = {}

    def count(value: Any, depth: int) -> int:
        """How many values stand in one, as often as they do."""
        if not isinstance(value, dict | list | tuple | set):
            return 1
        if id(value) not in counted:
            if depth > _DEEPEST:
                raise ValueError("its values lie too deep in one another")
            counted[id(value)] = _MOST_VALUES + 1  # until it is known: one that holds itself has no end
            within = value.values() if isinstance(value, dict) else value
            counted[id(value)] = 1 + sum(count(each, depth + 1) for each in within)
        return counted[id(value)]

    if count(checkpoint, 0) > _MOST_VALUES:
        raise ValueError(f"it holds more than {_MOST_VALUES:,} values")
