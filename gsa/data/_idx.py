"""MNIST's digits in their original files: a header, and a byte a value."""

import struct
from math import prod
from pathlib import Path

import numpy
import torch
from torch import Tensor

__all__ = ["read_digits"]


def read_digits(folder: Path, part: str, count: int) -> tuple[Tensor, Tensor]:
    """The first `count` digits of a part, "train" or "t10k": pictures uint8 [count, 28, 28], labels int64 [count].

    Raises:
        FileNotFoundError: the files are not there.
        ValueError: a header that is not MNIST's, a file of another length than its header says, fewer digits, or a
            label that is not 0 … 9.
    """
    files = [folder / f"{part}-images-idx3-ubyte", folder / f"{part}-labels-idx1-ubyte"]
    if not all(file.is_file() for file in files):
        raise FileNotFoundError(
            f"MNIST's raw files were not found under {folder}; set data.root to the folder that "
            "holds MNIST/raw, or fetch them with torchvision.datasets.MNIST(root, download=True)"
        )
    pictures, labels = _read(files[0], (28, 28), count), _read(files[1], (), count)
    if (labels > 9).any():
        row = int(labels.argmax())
        raise ValueError(f"{files[1]}, row {row}: labels must be 0 … 9, but got {labels[row]}")
    return torch.from_numpy(pictures), torch.from_numpy(labels).long()


def _read(file: Path, item: tuple[int, ...], count: int) -> numpy.ndarray:
    """The first rows of a file of bytes [N, *item]; its header is compared with its length before it is believed."""
    size, length = file.stat().st_size, 8 + 4 * len(item)
    with file.open("rb") as stream:
        header = stream.read(length)
    if len(header) < length:
        raise ValueError(f"{file} must begin with a header of {length} bytes, but has {size} bytes")
    magic, rows, *found = struct.unpack(f">{length // 4}I", header)
    if magic != 0x801 + len(item) or tuple(found) != item:
        expected = struct.pack(f">{length // 4}I", 0x801 + len(item), rows, *item).hex()
        raise ValueError(f"{file} must begin with MNIST's header {expected}, but begins with {header.hex()}")
    if size != length + rows * prod(item):
        raise ValueError(f"{file} must have {length + rows * prod(item):,} bytes for {rows:,} digits, but has {size:,}")
    if rows < count:
        raise ValueError(f"{file} must hold at least {count:,} digits, but holds {rows:,}")
    return numpy.fromfile(file, numpy.uint8, count * prod(item), offset=length).reshape(count, *item)
