"""The official RotMNIST archive: verified before it is used, and parsed once into a compact cache."""

import zipfile
from pathlib import Path
from typing import IO

import numpy

from gsa.data._cache import cache_files, write_cache
from gsa.data._download import alone_in, check_digest, fetch

__all__ = ["ARCHIVE", "MD5", "prepare_archive", "read_archive"]

ARCHIVE = "mnist_rotation_new.zip"
URL = f"http://www.iro.umontreal.ca/~lisa/icml2007data/{ARCHIVE}"
MD5 = "0f9a947ff3d30e95cd685462cbf3b847"
MOST_BYTES = 200_000_000  # of the archive

# Members in the order of the rows that come out, and their numbers of rows of 784 pixels and a label.
MEMBERS = {
    "mnist_all_rotation_normalized_float_train_valid.amat": 12_000,
    "mnist_all_rotation_normalized_float_test.amat": 50_000,
}
_BYTES_A_ROW = 785 * 40  # no official row comes near


def prepare_archive(root: Path, download: bool = False, md5: str = MD5, members: dict[str, int] | None = None) -> None:
    """Parse the archive in `root` into the cache, unless the cache is there.

    Raises:
        FileNotFoundError: no archive, and `download` is false.
        ValueError: a digest that is not the official one, or a file that is not what it should be, by name and row.
    """
    files, archive = cache_files(root), root / ARCHIVE
    if all(file.is_file() for file in files):  # before anything is written: the folder may be read-only
        return
    if not archive.is_file() and not download:
        raise FileNotFoundError(
            f"the official archive was not found at {archive}; put it there ({URL}), let it be fetched with "
            "data.download=true, or use data.source=mnist, digits generated from MNIST"
        )
    with alone_in(root):
        if all(file.is_file() for file in files):  # another process has been faster
            return
        if not archive.is_file():
            fetch(URL, archive, md5, MOST_BYTES)
        check_digest(archive, md5)
        write_cache(root, *read_archive(archive, members or MEMBERS))


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
    except ValueError:
        raise
    except Exception as error:  # whatever zipfile and its decoders make of damaged bytes
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
