"""The HDF5 files of PatchCamelyon: what they declare is compared with what they are before it is read."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil, prod
from pathlib import Path

import h5py
import numpy
import torch
from torch import Tensor
from torch.utils.data import Dataset

__all__ = ["Patches"]

_ITEMS = {"x": (96, 96, 3), "y": (1, 1, 1)}  # of the arrays [N, *item]
_LOOKED_AT = 16  # patches, of a digest
_EXPANSION = 1032  # times that deflate makes bytes more, at most
_MOST_CHUNK = 1 << 28  # bytes that are unpacked for one patch


class Patches(Dataset):
    """By index, a patch uint8 [3, 96, 96] and its label; the pictures' file is open only while it is read.

    Args:
        pictures: file with the array x, [N, 96, 96, 3] of bytes.
        labels: file with the array y, [N, 1, 1, 1] of bytes.

    Raises:
        ValueError: a file that is not HDF5 or holds something else, one that gets its contents from other files, one
            that declares more than it holds, a label that is neither 0 nor 1.
    """

    def __init__(self, pictures: Path, labels: Path) -> None:
        self.pictures = pictures
        self.count = _count(pictures, "x")
        if (labelled := _count(labels, "y")) != self.count:
            raise ValueError(f"{pictures} holds {self.count} patches, but {labels} {labelled} labels")
        with _opened(labels, "y") as y:
            classes = y[:].reshape(-1)
        if (classes > 1).any():
            row = int((classes > 1).argmax())
            raise ValueError(f"{labels}, row {row}: labels must be 0 or 1, but got {classes[row]}")
        self.labels: list[int] = classes.tolist()

    def __len__(self) -> int:
        return self.count

    @property
    def digest(self) -> str:
        """SHA-256 of the labels and of some of the patches: other files have another."""
        found = hashlib.sha256(bytes(self.labels))
        for row in range(0, self.count, max(self.count // _LOOKED_AT, 1)):
            found.update(self[row][0].numpy().tobytes())
        return found.hexdigest()

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[tuple[Tensor, int]]:
        """Several at once, which takes a fraction of the time, as most of it goes into opening."""
        rows = [range(self.count)[index] for index in indices]
        found = numpy.empty((len(rows), *_ITEMS["x"]), numpy.uint8)
        with _opened(self.pictures, "x") as x:
            for place, row in enumerate(rows):
                x.read_direct(found, numpy.s_[row], numpy.s_[place])
        pictures = torch.from_numpy(found).movedim(-1, 1)
        return [(picture, self.labels[row]) for picture, row in zip(pictures, rows, strict=True)]


def _count(file: Path, key: str) -> int:
    with _opened(file, key) as array:
        _check_storage(array, file.stat().st_size)
        return len(array)


@contextmanager
def _opened(file: Path, key: str) -> Iterator[h5py.Dataset]:
    """An array of a file; whatever goes wrong while it is open is a ValueError that names the file."""
    try:
        with h5py.File(file, "r") as opened:
            yield _array(opened, key)
    except Exception as error:  # what HDF5 makes of damaged bytes has no common name
        raise ValueError(f"{file} is not a file of PatchCamelyon: {' '.join(str(error).split())}") from error


def _array(opened: h5py.File, key: str) -> h5py.Dataset:
    array = opened[key] if isinstance(opened.get(key, getlink=True), h5py.HardLink) else None
    if not isinstance(array, h5py.Dataset) or array.shape[1:] != _ITEMS[key] or array.dtype != numpy.uint8:
        found = f"{array.shape} of {array.dtype}" if isinstance(array, h5py.Dataset) else sorted(opened)
        raise ValueError(f"it should hold {key!r}: (N, {str(_ITEMS[key])[1:-1]}) of uint8, but holds {found}")
    if array.is_virtual or array.external:
        raise ValueError(f"it should hold {key!r} itself, but refers to other files")
    return array


def _check_storage(array: h5py.Dataset, size: int) -> None:
    """Everything that is declared has been stored; what has not would be read as zeros."""
    declared, stored, chunks = array.nbytes, array.id.get_storage_size(), array.chunks
    if array.id.get_create_plist().get_nfilters() == 0:
        whole = declared <= stored <= size
    else:
        count = prod(ceil(side / chunk) for side, chunk in zip(array.shape, chunks, strict=True))
        whole = stored <= size and declared <= _EXPANSION * size and array.id.get_num_chunks() == count
    if not whole:
        raise ValueError(f"it declares {declared:,} bytes, but has {size:,}, of which {stored:,} hold them")
    if chunks is not None and prod(chunks) > _MOST_CHUNK:
        raise ValueError(f"chunks must have at most {_MOST_CHUNK:,} bytes, but have {prod(chunks):,}")
