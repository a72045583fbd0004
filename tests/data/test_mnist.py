"""The split generated from MNIST's files, and everything that can be wrong with these."""

import math
import struct

import numpy
import pytest
import torch

from gsa.data import RotMNISTDataModule, turned_mnist
from gsa.data._disturbed import cluttered, occluded
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
    elsewhere, same = turned_mnist(tmp_path, seed=3, angle_seed=1)
    assert torch.equal(same, labels) and (elsewhere[:1000] - pictures[:1000]).abs().flatten(1).amax(1).min() > 0
    module = RotMNISTDataModule(tmp_path, source="mnist", split_seed=3)
    module.setup()
    assert "not the official split" in module.describe()["source"] and module.describe()["test"] == 50_000


def test_clutter_and_occlusion(tmp_path):
    write_idx(tmp_path)
    parts = {}
    for clutter, occlusion in ((0, 0), (3, 0), (0, 9)):
        module = RotMNISTDataModule(tmp_path, source="mnist", split_seed=3, clutter=clutter, occlusion=occlusion)
        module.setup()
        first = torch.stack([module.parts["test"].as_read(module.parts["test"][i][0]) for i in range(300)])
        parts[clutter, occlusion] = first.round(decimals=5)
    plain, among, missing = parts.values()
    lit = [(pictures > 0).flatten(1).sum(1) for pictures in parts.values()]
    assert (lit[1] >= lit[0]).all() and (lit[1] > lit[0]).any() and (among >= plain).all()
    assert (lit[2] == 0).any() and torch.equal(missing[lit[2] == lit[0]], plain[lit[2] == lit[0]])
    assert "with 3 fragments of others" in RotMNISTDataModule(tmp_path, source="mnist", clutter=3).source
    assert "9×9 pixels missing" in RotMNISTDataModule(tmp_path, source="mnist", occlusion=9).source


def test_fragments_are_of_other_pictures_and_fit():
    """Picture i is i + 1 all over, so that what is not its own shows whose it is."""
    pictures = (torch.arange(4.0) + 1)[:, None, None, None].expand(4, 2, 23, 25)
    result = cluttered(pictures, 1, numpy.random.default_rng(0))
    assert torch.equal(result, cluttered(pictures, 1, numpy.random.default_rng(0)))
    assert torch.equal(result[3], pictures[3])  # the brightest shows nothing of the others
    for number in range(3):
        strange = result[number, 0] != number + 1
        assert strange.sum() in (0, 49) and result[number].unique().numel() <= 2
        assert torch.equal(result[number, 0], result[number, 1])
    assert (result[:3] != pictures[:3]).any()


def test_no_fragment_of_one_part_is_seen_in_another():
    """Pictures of a part are alike, so that what is not its own shows whose it is."""
    numbers = torch.tensor([1.0] * 10_000 + [2.0] * 2_000 + [3.0] * 50_000)
    pictures = numbers[:, None, None, None].expand(-1, 1, 21, 21)
    assert torch.equal(RotMNISTDataModule(clutter=1)._disturbed(pictures), pictures)


def test_a_square_is_missing():
    pictures = torch.ones(50, 1, 12, 10)
    result = occluded(pictures, 4, numpy.random.default_rng(0))
    assert (result.sum((1, 2, 3)) == 120 - 16).all() and result.sum(0).min() < 50
    assert torch.equal(occluded(pictures, 0, numpy.random.default_rng(0)), pictures)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"clutter": -1}, "clutter must not be negative, but got -1"),
        ({"occlusion": 29}, "occlusion must be in .0, 28. pixels, but got 29"),
    ],
)
def test_what_cannot_be_disturbed_so(options, message):
    with pytest.raises(ValueError, match=message):
        RotMNISTDataModule(source="mnist", **options)
    pictures = torch.ones(3, 1, 12, 10)
    with pytest.raises(ValueError, match="at least 21 pixels, but got 1 of 3 pictures of 12×10"):
        cluttered(pictures, 1, numpy.random.default_rng(0))
    with pytest.raises(ValueError, match="must be in .0, 10., but got 11"):
        occluded(pictures, 11, numpy.random.default_rng(0))


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


def test_pictures_and_labels_are_drawn_in_one_order(tmp_path, monkeypatch):
    """Every picture is as bright as its label says."""

    def digits(raw, part, count):
        labels = torch.arange(count) % 10
        return labels.to(torch.uint8)[:, None, None].expand(-1, 28, 28), labels

    monkeypatch.setattr("gsa.data._rotmnist.read_digits", digits)
    pictures, labels = turned_mnist(tmp_path, seed=3)
    assert torch.equal((255 * pictures[:, 0, 14, 14]).round().long(), labels)
