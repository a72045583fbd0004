"""What augmentation and disturbance do to pictures, and how often."""

import math

import numpy
import pytest
import torch
import torchvision.transforms.v2

from gsa._limits import AUGMENTATIONS
from gsa.data._augmentation import _stretch, augment
from gsa.data._disturbed import cluttered, occluded


def randoms(count):
    return [numpy.random.default_rng(seed) for seed in range(count)]


def changed(name, picture, count=200):
    return augment(picture.expand(count, -1, -1, -1), [name], randoms(count))


def test_turns_are_by_all_angles_alike_and_flips_one_time_in_two():
    spot = torch.zeros(1, 15, 15)
    spot[0, 6:9, 11:14] = 1
    place = changed("turns", spot).flatten(1).argmax(1)
    angle = torch.atan2(7.0 - place // 15, place % 15 - 7.0)
    assert angle.histc(4, -math.pi, math.pi).min() > 30
    flipped = (changed("flips", spot)[:, 0, 7, 2] == 1).float().mean()
    assert 0.4 < flipped < 0.6


def centres(pictures):
    """Where spots are, in pixels right and down of the middle: [N, 1, H, W] → [N, 2]."""
    height, width = pictures.shape[-2:]
    down, right = torch.meshgrid(
        torch.arange(height) - (height - 1) / 2, torch.arange(width) - (width - 1) / 2, indexing="ij"
    )
    mass = pictures.sum((1, 2, 3))
    return torch.stack([(pictures[:, 0] * places).sum((1, 2)) / mass for places in (right, down)], dim=-1)


def test_turns_keep_distances_in_pictures_that_are_not_square_and_stretches_change_them_both_ways():
    spot = torch.zeros(1, 21, 31)
    spot[0, 9:12, 20:23] = 1
    assert centres(changed("turns", spot)).norm(dim=-1).tolist() == pytest.approx([6.0] * 200, abs=0.1)
    factors = centres(changed("stretches", spot)).norm(dim=-1) / 6
    assert 0.72 < factors.min() < 0.87 and 1.15 < factors.max() < 1.38


def test_a_stretch_is_the_exponential_of_a_symmetric_matrix():
    along, skew, across = numpy.random.default_rng(3).uniform(-0.15, 0.15, 3)
    expected = torch.matrix_exp(torch.tensor([[along, skew], [skew, across]], dtype=torch.float64))
    torch.testing.assert_close(torch.tensor(_stretch(numpy.random.default_rng(3)), dtype=torch.float64), expected)


@pytest.mark.parametrize("side", [9, 32])
def test_a_picture_is_changed_by_its_own_numbers_whatever_is_beside_it(side):
    """Bit for bit, so that batches may be cut otherwise; planted: the numbers of another picture."""
    pictures, names = torch.rand(7, 3, side, side), ["crops", "turns", "flips", "stretches", "randaugment"]
    together = augment(pictures, names, randoms(7))
    for index in range(7):
        alone = augment(pictures[index : index + 1], names, randoms(7)[index : index + 1])
        assert torch.equal(alone[0], together[index])
    assert not torch.equal(augment(pictures[:1], names, randoms(7)[1:2])[0], together[0])


def test_a_turn_and_a_stretch_are_one_step_that_blurs_less_than_a_bilinear_one(monkeypatch):
    steps, sample = [], torch.nn.functional.grid_sample
    monkeypatch.setattr(
        torch.nn.functional, "grid_sample", lambda *a, **options: steps.append(options["mode"]) or sample(*a, **options)
    )
    augment(torch.rand(2, 1, 9, 9), ["turns", "crops", "stretches"], randoms(2))
    assert steps == ["bicubic"]


def test_crops_shift_rows_and_columns_by_up_to_an_eighth():
    spot = torch.zeros(1, 16, 24)
    spot[0, 8, 12] = 1
    places = {divmod(int(place), 24) for place in changed("crops", spot, 400).flatten(1).argmax(1)}
    assert places == {(8 + down, 12 + right) for down in range(-2, 3) for right in range(-3, 4)}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_augmentations_leave_torchs_generator_alone(name):
    pictures, state = torch.rand(2, 3, 8, 8), torch.get_rng_state()
    augment(pictures, [name], randoms(2))
    assert torch.equal(torch.get_rng_state(), state)


def test_randaugment_is_bilinear(monkeypatch):
    seen = []
    theirs = torchvision.transforms.v2.RandAugment
    monkeypatch.setattr(
        torchvision.transforms.v2, "RandAugment", lambda **options: seen.append(options) or theirs(**options)
    )
    augment(torch.rand(2, 3, 8, 8), ["randaugment"], randoms(2))
    assert seen == [{"interpolation": torchvision.transforms.v2.InterpolationMode.BILINEAR}]


def test_every_pixel_may_be_missing():
    result = occluded(torch.ones(600, 1, 12, 10), 4, numpy.random.default_rng(0))
    assert (result == 0).any(0).all()


def test_fragments_are_out_of_the_middle_and_fall_anywhere():
    """The border of the bright picture, 7 pixels wide, is of another brightness, and never taken."""
    bright = torch.ones(1, 1, 21, 23)
    bright[..., 7:-7, 7:-7] = 2
    result = cluttered(torch.cat((bright, 0 * bright)), 200, numpy.random.default_rng(0))
    assert cluttered(torch.cat((bright, 0 * bright)), 3, numpy.random.default_rng(0))[1].unique().tolist() == [0, 2]
    assert (result[1] == 2).float().mean() > 0.9 and result[1, 0, -1].any() and result[1, 0, :, -1].any()
