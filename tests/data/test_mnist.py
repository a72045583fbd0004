"""The split generated from MNIST's files, and everything that can be wrong with these."""

import math
import struct

import numpy
import pytest
import torch

from gsa.data import RotMNISTDataModule, turned_mnist
from gsa.data._idx import read_digits


def write_idx(root, training=60_000, test=2_000, edit=None):
    """MNIST's files with one bright pixel, ten above the centre; the labels count up, those of the test are 7."""
    (folder := root / "MNIST" / "raw").mkdir(parents=True)
    for part, count in (("train", training), ("t10k", test)):
        pictures = numpy.zeros((count, 28, 28), numpy.uint8)
        pictures[:, 4, 14] = 255
        labels = (numpy.arange(count) % 10 if part == "train" else numpy.full(count, 7)).astype(numpy.uint8)
        for name, array in (("images-idx3", pictures), ("labels-idx1", labels)):
            header = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape)
            (folder / f"{part}-{name}-ubyte").write_bytes(header + array.tobytes())
    return folder


def test_the_generated_split(tmp_path):
    write_idx(tmp_path)
    pictures, labels = turned_mnist(tmp_path, seed=3)
    assert pictures.shape == (62_000, 1, 28, 28) and (labels[60_000:] == 7).all()
    assert labels[:60_000].bincount().tolist() == [6000] * 10 and labels[:10].tolist() != list(range(10))
    place = pictures[:1000].flatten(1).argmax(1)
    angle = torch.atan2(13.5 - place // 28, place % 28 - 13.5) * 180 / math.pi
    assert angle.histc(8, -180, 180).min() > 80  # all directions alike
    again, _ = turned_mnist(tmp_path, seed=3)
    assert torch.equal(pictures[:100], again[:100])
    module = RotMNISTDataModule(tmp_path, source="mnist", split_seed=3)
    module.setup()
    assert "not the official split" in module.describe()["source"] and module.describe()["test"] == 50_000


def edited(name, edit):
    def damage(folder):
        content = bytearray((folder / name).read_bytes())
        edit(content)
        (folder / name).write_bytes(content)

    return damage


IMAGES, LABELS = "train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


@pytest.mark.parametrize(
    "damage, message",
    [
        (edited(IMAGES, lambda c: c.__setitem__(3, 1)), f"{IMAGES} must begin with MNIST's header 00000803"),
        (edited(IMAGES, lambda c: c.__setitem__(11, 27)), f"{IMAGES} must begin with MNIST's header 00000803"),
        (edited(IMAGES, lambda c: c.__setitem__(7, 3)), f"{IMAGES} must have 2,368 bytes for 3 digits, but has 3,152"),
        (edited(IMAGES, lambda c: c.__setitem__(4, 255)), f"{IMAGES} must have .* bytes for 4,278,190,084 digits"),
        (edited(IMAGES, lambda c: c.pop()), f"{IMAGES} must have 3,152 bytes for 4 digits, but has 3,151"),
        (edited(IMAGES, lambda c: c.clear()), f"{IMAGES} must begin with a header of 16 bytes, but has 0"),
        (lambda folder: None, f"{IMAGES} must hold at least 60,000 digits, but holds 4"),
        (edited(LABELS, lambda c: c.__setitem__(9, 10)), f"{LABELS}, row 1: labels must be 0 … 9, but got 10"),
    ],
)
def test_damage_to_mnist_is_named(tmp_path, damage, message):
    damage(write_idx(tmp_path, training=4))
    with pytest.raises(ValueError, match=message):
        read_digits(tmp_path / "MNIST" / "raw", "t10k", 2_000)
        turned_mnist(tmp_path)


def test_few_digits_are_no_data_set_of_test_digits(tmp_path):
    write_idx(tmp_path, training=200)
    with pytest.raises(ValueError, match="at least 60,000 digits, but holds 200"):
        RotMNISTDataModule(tmp_path, source="mnist").setup()


def test_generating_needs_mnist(tmp_path):
    with pytest.raises(FileNotFoundError, match="set data.root to the folder that holds MNIST/raw"):
        turned_mnist(tmp_path)
