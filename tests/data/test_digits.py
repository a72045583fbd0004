"""The digits of scikit-learn, turned: a function of the seed, in disjoint parts."""

import numpy
import pytest
import torch
from sklearn.datasets import load_digits

from gsa.data import DigitsDataModule, turned_digits


def test_digits_are_a_function_of_the_seed():
    images, labels = turned_digits(3)
    again, labels_again = turned_digits(3)
    assert torch.equal(images, again) and torch.equal(labels, labels_again)
    assert not torch.equal(images, turned_digits(4)[0])
    assert images.shape == (1797, 1, 12, 12) and images.dtype == torch.float32
    assert images.amin() == 0 and 0.9 < images.amax() <= 1
    assert labels.bincount(minlength=10).min() > 170


def test_every_angle_occurs():
    """The mean picture of a class is nearly the same in all directions; that of unturned digits is not."""
    images, labels = turned_digits()
    mean = images[labels == 1].mean(0)
    assert (mean - torch.rot90(mean, 1, (-2, -1))).norm() / (mean - mean.mean()).norm() < 0.3


def test_the_parts_are_disjoint_and_cover_everything():
    module = DigitsDataModule()
    module.setup()
    parts = [module.parts[name].first(2000)[0] for name in ("train", "val", "test")]
    assert [len(p) for p in parts] == [1200, 200, 397]
    assert torch.equal(torch.cat(parts), turned_digits()[0])


def test_some_may_stay_upright():
    """The same digits in the same order. Planted: those of another part."""

    def parts(turned):
        module = DigitsDataModule(turned=turned)
        module.setup()
        assert module.describe()["source"].endswith({"test": "turned for the test", "none": "upright"}[turned])
        return [module.parts[name].first(2000)[0] for name in ("train", "val", "test")]

    (turned, labels), (upright, same) = turned_digits(), turned_digits(upright=True)
    assert torch.equal(labels, same) and torch.equal(torch.cat(parts("none")), upright)
    mixed = torch.cat(parts("test"))
    assert torch.equal(mixed[:1400], upright[:1400]) and torch.equal(mixed[1400:], turned[1400:])
    ones = upright[labels == 1].mean(0)
    assert (ones - torch.rot90(ones, 1, (-2, -1))).norm() / (ones - ones.mean()).norm() > 0.5


def test_pictures_are_normalised_by_the_training_part():
    module = DigitsDataModule()
    module.setup()
    train, test = (torch.stack([x for x, _ in module.parts[part]]) for part in ("train", "test"))
    assert abs(train.mean()) < 1e-5 and abs(train.std() - 1) < 1e-5
    assert abs(test.mean()) > 1e-5  # not looked at


@pytest.mark.parametrize("size", [12, 16, 20])
def test_digits_stay_in_the_frame(size):
    images, _ = turned_digits(size=size)
    border = torch.cat([images[..., 0, :], images[..., -1, :], images[..., :, 0], images[..., :, -1]], -1)
    assert (border < 0.15).float().mean() > 0.97


def test_pictures_and_labels_are_drawn_in_one_order():
    """Classes are as bright in the mean as those of scikit-learn; with labels of others they would be alike."""
    (images, labels), (pixels, theirs) = turned_digits(), load_digits(return_X_y=True)
    ours = [images[labels == digit].sum((1, 2, 3)).mean().item() for digit in range(10)]
    assert numpy.corrcoef(ours, [pixels[theirs == digit].sum(1).mean() for digit in range(10)])[0, 1] > 0.99
