"""The official RotMNIST archive: verified before it is used, parsed once into a compact cache that cannot hold code."""

import os
import zipfile
from pathlib import Path
from typing import IO

import numpy
import torch
from filelock import FileLock
from torch import Tensor

from gsa.data._download import check_digest, fetch

__all__ = ["ARCHIVE", "CACHE", "MD5", "prepare_archive", "read_archive", "read_cache"]

ARCHIVE = "mnist_rotation_new.zip"
URL = f"http://www.iro.umontreal.ca/~lisa/icml2007data/{ARCHIVE}"  # plain http: nothing is read before the digest
MD5 = "0f9a947ff3d30e95cd685462cbf3b847"
CACHE = "rotmnist"  # rotmnist_pictures.npy, rotmnist_labels.npy

# Members in the order of the rows that come out, and their numbers of rows of 784 pixels and a label.
MEMBERS = {
    "mnist_all_rotation_normalized_float_train_valid.amat": 12_000,
    "mnist_all_rotation_normalized_float_test.amat": 50_000,
}
_AGAIN = "delete it, and it will be made again"
_BYTES_A_ROW = 785 * 40  # no official row comes near


def prepare_archive(root: Path, download: bool = False, md5: str = MD5, members: dict[str, int] | None = None) -> None:
    """Parse the archive in `root` into the cache, unless the cache is there.

    Raises:
        FileNotFoundError: no archive, and `download` is false.
        ValueError: a digest that is not the official one, or a file that is not what it should be, by name and row.
    """
    files, archive = cache_files(root), root / ARCHIVE
    if all(file.exists() for file in files):  # before anything is written: the folder may be read-only
        return
    if not archive.exists() and not download:
        raise FileNotFoundError(
            f"the official archive was not found at {archive}; put it there ({URL}), let it be fetched with "
            "data.download=true, or use data.source=mnist, digits generated from MNIST"
        )
    root.mkdir(parents=True, exist_ok=True)
    if not os.access(root, os.W_OK):
        raise ValueError(f"{root} must be a folder that can be written, because the archive is parsed into it once")
    with FileLock(root / f".{CACHE}.lock"):  # the system takes it back from an owner that has died
        if all(file.exists() for file in files):  # another process has been faster
            return
        if not archive.exists():
            fetch(URL, archive, md5)
        check_digest(archive, md5)
        pictures, labels = read_archive(archive, members or MEMBERS)
        arrays: tuple[numpy.ndarray, ...] = (pictures.astype(numpy.float16), labels.astype(numpy.uint8))
        for file, array in zip(files, arrays, strict=True):
            part = file.with_suffix(".part")
            with part.open("wb") as stream:
                numpy.save(stream, array, allow_pickle=False)
            os.replace(part, file)


def read_cache(root: Path, rows: int = 62_000) -> tuple[Tensor, Tensor]:
    """Pictures float16 [rows, 1, 28, 28] and labels int64 [rows]; a cache is arrays of numbers, never objects.

    Raises:
        ValueError: anything else in the files.
    """
    arrays = []
    for file, shape, dtype in zip(cache_files(root), ((rows, 784), (rows,)), (numpy.float16, numpy.uint8), strict=True):
        try:
            with file.open("rb") as stream:
                array = numpy.lib.format.read_array(stream, allow_pickle=False)
        except Exception as error:  # whatever NumPy makes of damaged bytes
            raise ValueError(f"{file} is not a cache of numbers ({error}); {_AGAIN}") from error
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(
                f"{file} should hold {shape} of {numpy.dtype(dtype)}, but holds {array.shape} of {array.dtype}; "
                f"{_AGAIN}"
            )
        arrays.append(torch.from_numpy(array))
    return arrays[0].view(-1, 1, 28, 28), arrays[1].long()


def read_archive(archive: Path, members: dict[str, int]) -> tuple[numpy.ndarray, numpy.ndarray]:
    """All rows of the members, in order: pixels [rows, 784] and labels [rows]; nothing is unpacked to disk.

    Raises:
        ValueError: other members than these, one that is too large, or a row that is not 784 pixels and a label.
    """
    parts = []
    try:
        with zipfile.ZipFile(archive) as opened:
            found = {info.filename: info for info in opened.infolist()}
            if set(found) != set(members):
                raise ValueError(f"{archive} should hold {sorted(members)}, but holds {sorted(found)}")
            for member, rows in members.items():
                if found[member].file_size > rows * _BYTES_A_ROW:
                    raise ValueError(
                        f"{archive}, {member} would unpack to {found[member].file_size:,} bytes, "
                        f"but {rows} rows have at most {rows * _BYTES_A_ROW:,}"
                    )
                with opened.open(member) as stream:
                    parts.append(_read_rows(stream, rows, f"{archive}, {member}"))
    except (zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{archive} is not a whole zip archive: {error}") from error
    table = numpy.concatenate(parts)
    return table[:, :-1], table[:, -1].astype(numpy.int64)


def _read_rows(stream: IO[bytes], rows: int, where: str) -> numpy.ndarray:
    table = numpy.empty((rows, 785), dtype=numpy.float32)
    count = 0
    for count, line in enumerate(stream, start=1):
        if count > rows:
            raise ValueError(f"{where} should hold {rows} rows, but has more")
        try:
            row = numpy.array(line.split(), dtype=numpy.float32)
        except ValueError as error:
            raise ValueError(f"{where}, row {count - 1}: {error}") from error
        if row.shape != (785,):
            raise ValueError(f"{where}, row {count - 1}: 784 pixels and a label, but got {len(row)} numbers")
        if not (row[:-1] >= 0).all() or not (row[:-1] <= 1).all():
            raise ValueError(f"{where}, row {count - 1}: pixels must be numbers in [0, 1]")
        if row[-1] not in range(10):
            raise ValueError(f"{where}, row {count - 1}: labels must be 0 … 9, but got {row[-1]:g}")
        table[count - 1] = row
    if count != rows:
        raise ValueError(f"{where} should hold {rows} rows, but has {count}")
    return table


def cache_files(root: Path) -> tuple[Path, Path]:
    """Where the parsed pictures and labels are kept."""
    return root / f"{CACHE}_pictures.npy", root / f"{CACHE}_labels.npy"
