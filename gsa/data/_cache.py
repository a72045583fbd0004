"""RotMNIST's rows as two arrays of numbers and their digests: what is read is what was written, and never code."""

import hashlib
import io
import json
import math
from pathlib import Path

import numpy
import torch
from torch import Tensor

from gsa.files import write_whole

__all__ = ["cache_files", "read_cache", "write_cache"]

CACHE = "rotmnist"  # rotmnist_pictures.npy, rotmnist_labels.npy, rotmnist_digests.json
_HEADER = 1 << 16  # bytes that NumPy's header has at most
_AGAIN = "delete it, and it will be made again"


def cache_files(root: Path) -> tuple[Path, Path]:
    """Where the parsed pictures and labels are kept."""
    return root / f"{CACHE}_pictures.npy", root / f"{CACHE}_labels.npy"


def write_cache(root: Path, pictures: numpy.ndarray, labels: numpy.ndarray) -> None:
    """Pixels [rows, 784] and labels [rows], after their digests: where both arrays are, there are digests."""
    contents = {}
    arrays: tuple[numpy.ndarray, ...] = (pictures.astype(numpy.float16), labels.astype(numpy.uint8))
    for file, array in zip(cache_files(root), arrays, strict=True):
        stream = io.BytesIO()
        numpy.save(stream, array, allow_pickle=False)
        contents[file] = stream.getvalue()
    digests = {file.name: hashlib.sha256(content).hexdigest() for file, content in contents.items()}
    write_whole(_digests_file(root), json.dumps(digests, indent=1).encode())
    for file, content in contents.items():
        write_whole(file, content)


def read_cache(root: Path, rows: int = 62_000) -> tuple[Tensor, Tensor]:
    """Pictures float16 [rows, 1, 28, 28] and labels int64 [rows]; a cache is arrays of numbers, never objects.

    Raises:
        FileNotFoundError: there are no files.
        ValueError: anything else in the files, or other bytes than were written.
    """
    if not any(file.exists() for file in cache_files(root)):
        raise FileNotFoundError(f"there are no pictures in {root} yet: prepare_data() makes them of the archive")
    arrays, digests = [], _digests(root)
    for file, shape, dtype in zip(cache_files(root), ((rows, 784), (rows,)), (numpy.float16, numpy.uint8), strict=True):
        try:
            array = _read_array(file, shape, numpy.dtype(dtype), digests)
        except Exception as error:  # whatever NumPy makes of damaged bytes
            raise ValueError(f"{file} is not a cache of numbers ({error}); {_AGAIN}") from error
        arrays.append(torch.from_numpy(array))
    return arrays[0].view(-1, 1, 28, 28), arrays[1].long()


def _digests_file(root: Path) -> Path:
    return root / f"{CACHE}_digests.json"


def _digests(root: Path) -> dict[str, str] | None:
    """SHA-256 of the files by name; None where nobody has written them down."""
    file = _digests_file(root)
    try:
        return dict(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return None
    except Exception as error:  # whatever JSON makes of damaged bytes
        raise ValueError(f"{file} does not hold digests ({error}); {_AGAIN} with the cache beside it") from error


def _read_array(
    file: Path, shape: tuple[int, ...], dtype: numpy.dtype, digests: dict[str, str] | None
) -> numpy.ndarray:
    if not file.is_file():  # reading a pipe would wait for ever
        raise ValueError("it is not a file")
    size, most = file.stat().st_size, math.prod(shape) * dtype.itemsize + _HEADER
    if size > most:
        raise ValueError(f"at most {most:,} bytes were expected, but it has {size:,}")
    content = numpy.fromfile(file, numpy.uint8)
    digest = hashlib.sha256(content.data).hexdigest()
    if digests is not None and digests.get(file.name) != digest:
        raise ValueError(f"its SHA-256 should be {digests.get(file.name)}, but is {digest}")
    stream = io.BytesIO(content[:_HEADER].tobytes())
    numpy.lib.format.read_magic(stream)
    header = numpy.lib.format.read_array_header_1_0(stream)
    if header != (shape, False, dtype):
        raise ValueError(f"it should hold {shape} of {dtype}, but holds {header[0]} of {header[2]}")
    return content[stream.tell() :].view(dtype).reshape(shape)
