"""Damaged data and pictures: what they were, or one line that names the file."""

import os
from pathlib import Path

import h5py
import numpy
import pytest
import torch
from PIL import Image

from gsa.data._amat import ARCHIVE, read_archive
from gsa.data._cache import cache_files, read_cache, write_cache
from gsa.data._idx import read_digits
from gsa.data._patches import Patches
from gsa.files.pictures import FORMATS, read_pages, read_picture
from tests.data.test_mnist import write_idx
from tests.data.test_rotmnist import ROWS, official, write
from tests.fuzz.outcomes import outcomes

EDITS = [10, pytest.param(200, marks=pytest.mark.fuzz)]
edited = pytest.mark.parametrize("count", EDITS)


def shape_of(pictures, labels, classes):
    """What can be known of data without a digest: pixels, and labels in their range, are what the file says."""
    return tuple(pictures.shape), pictures.dtype, tuple(labels.shape), bool(((labels >= 0) & (labels < classes)).all())


@edited
@pytest.mark.parametrize("name", ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"])
def test_mnist(tmp_path, name, count):
    folder = write_idx(tmp_path, training=4, test=1)
    outcomes(folder / name, lambda: shape_of(*read_digits(folder, "train", 4), 10), count)


@edited
def test_the_archive_of_rotmnist(tmp_path, count):
    write(tmp_path, official())
    archive = tmp_path / ARCHIVE
    outcomes(archive, lambda: [array.tobytes() for array in read_archive(archive, ROWS)], count)


@edited
@pytest.mark.parametrize("name", ["pictures.npy", "labels.npy", "digests.json"])
def test_the_cache_of_rotmnist(tmp_path, name, count):
    write_cache(tmp_path, numpy.random.default_rng(0).random((4, 784)), numpy.arange(4))
    outcomes(tmp_path / f"rotmnist_{name}", lambda: [tensor.tolist() for tensor in read_cache(tmp_path, 4)], count)


@edited
@pytest.mark.parametrize("index", [0, 1])
def test_a_cache_without_digests(tmp_path, index, count):
    write_cache(tmp_path, numpy.zeros((4, 784)), numpy.arange(4))
    (tmp_path / "rotmnist_digests.json").unlink()
    outcomes(cache_files(tmp_path)[index], lambda: shape_of(*read_cache(tmp_path, 4), 256), count)


@edited
@pytest.mark.parametrize("key", ["x", "y"])
@pytest.mark.parametrize("options", [{}, {"chunks": True, "compression": "gzip"}], ids=["plain", "packed"])
def test_patches(tmp_path, key, options, count):
    arrays = {"x": numpy.zeros((3, 96, 96, 3), "u1"), "y": numpy.array([0, 1, 0], "u1").reshape(3, 1, 1, 1)}
    for name, array in arrays.items():
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.create_dataset(name, data=array, **options)

    def read():
        pictures, labels = zip(*Patches(tmp_path / "x.h5", tmp_path / "y.h5"), strict=True)
        return shape_of(torch.stack(pictures), torch.tensor(labels), 2)

    outcomes(tmp_path / f"{key}.h5", read, count)


KINDS = [(kind, {}) for kind in FORMATS] + [
    ("TIFF", {"compression": "tiff_lzw"}),
    ("TIFF", {"compression": "jpeg"}),
    ("JPEG", {"progressive": True}),
    ("WEBP", {"lossless": True}),
    ("GIF", {"interlace": 0, "save_all": True}),
]


@edited
@pytest.mark.parametrize("kind, options", KINDS)
def test_pictures(tmp_path, kind, options, count):
    """Decoders make some picture of most damage to pixels; its size is what was asked for."""
    pixels = numpy.random.default_rng(0).integers(0, 256, (20, 24, 3), dtype=numpy.uint8)
    file = tmp_path / "picture"
    Image.fromarray(pixels).save(file, kind, **options)
    outcomes(file, lambda: read_picture(file, "RGB", 16).size, count)


@edited
def test_pages(tmp_path, count):
    """As many as are asked for, or an error."""
    file = tmp_path / "picture"
    first, *others = (Image.fromarray(numpy.full((20, 24), 257 * shade, numpy.uint16)) for shade in range(3))
    first.save(file, "TIFF", save_all=True, append_images=others)
    outcomes(file, lambda: [page.size for page in read_pages(file, 16, [None] * 3)], count)


def opens(file):
    with Image.open(file) as opened:
        return opened.convert("RGB").size


def hangs(file):
    while not file.read_bytes().startswith(b"\x89PNG"):
        pass


@pytest.mark.parametrize(
    "read, message",
    [
        (opens, "Error: "),
        (Path.read_bytes, "instead of"),
        (hangs, "ended with -14"),
        (lambda file: os._exit(3), "ended with 3"),
        (lambda file: bytearray(2 << 30), "MemoryError"),
    ],
    ids=["opens", "believes", "hangs", "crashes", "allocates"],
)
def test_a_reader_that_checks_nothing_is_noticed(tmp_path, monkeypatch, read, message):
    file = tmp_path / "picture"
    Image.fromarray(numpy.zeros((20, 24, 3), numpy.uint8)).save(file, "PNG")
    content = file.read_bytes()
    monkeypatch.setattr("tests.fuzz.outcomes._SECONDS", 1)
    with pytest.raises(AssertionError, match=message):
        outcomes(file, lambda: read(file), 200)
    assert file.read_bytes() == content
