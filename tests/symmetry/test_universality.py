"""A global network learns random labels of orbits, and cannot tell the members of an orbit apart."""

import pytest
import torch

import gsa
from gsa.symmetry import statements

pytestmark = pytest.mark.usefixtures("float64")


def network(encoding="fourier", neighbourhood=None, group="R4"):
    """Lifting and one block, each of which sees the whole picture."""
    keywords = {"channels": 8, "blocks": (1,), "pools": (0,), "num_heads": 2, "head_dim": 8, "norm": "channel"}
    keywords |= {"encoding": encoding, "neighbourhood": neighbourhood, "form": "regular", "num_classes": 4}
    return gsa.create_model("digits_r4_sa", group=group, **keywords).double()


@pytest.mark.slow  # so does the statement, with a smaller network
def test_random_labels_of_orbits_are_learned():
    pictures, labels, ours = torch.rand(16, 1, 6, 6), torch.randint(4, (16,)), network()
    assert statements.fit_labels(ours, pictures, labels, steps=0) < 0.6
    assert statements.fit_labels(ours, pictures, labels, steps=200) == 1
    assert statements.orbit_gap(ours, pictures, "R4") < 1e-10


@pytest.mark.slow  # as above
def test_what_is_far_apart_is_told_by_global_attention_and_not_by_windows():
    """Two dots at least five pixels apart, which no pixel sees both of through 3×3 windows twice."""
    pictures = torch.zeros(4, 1, 13, 13)
    pictures[..., 3, 3] = 1
    for picture, (row, column) in zip(pictures, ((3, 8), (4, 8), (5, 8), (8, 8)), strict=True):
        picture[:, row, column] = 1
    assert statements.fit_labels(network(group="R2"), pictures, torch.arange(4), steps=300) == 1
    windows = network(neighbourhood=3, group="R2")
    assert statements.fit_labels(windows, pictures, torch.arange(4), steps=20) == 0.25
    logits = windows(pictures)
    assert (logits - logits[:1]).abs().max() < 1e-13
    assert statements.orbit_gap(windows, pictures, "R2") < 1e-10  # rounding, not over rounding


class Maps(torch.nn.Module):
    """What a network says of every pixel: its features before the pool, mean over the poses."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, pictures):
        return self.network.head(self.network.forward_features(pictures)).mean(2)


def test_random_labels_of_pixels_are_learned_and_turn_with_the_picture():
    pictures, labels, ours = torch.rand(2, 1, 5, 5), torch.randint(2, (2, 5, 5)), Maps(network())
    assert statements.fit_labels(ours, pictures, labels, steps=300) == 1
    turned = ours(pictures.rot90(1, (-2, -1))).argmax(1)
    assert torch.equal(turned, labels.rot90(1, (-2, -1)))
    constant = Maps(network("constant"))  # planted: knows no places
    assert statements.fit_labels(constant, pictures, labels, steps=60) < 0.9


def test_pixels_of_one_orbit_cannot_be_separated():
    """A picture, and its turn with all labels the other way; planted: no poses."""
    pictures, labels = torch.rand(1, 1, 5, 5), torch.randint(2, (1, 5, 5))
    pairs = torch.cat((pictures, pictures.rot90(1, (-2, -1))))
    both = torch.cat((labels, 1 - labels.rot90(1, (-2, -1))))
    assert statements.fit_labels(Maps(network()), pairs, both, steps=40) == 0.5
    assert statements.fit_labels(Maps(network(group="Z2")), pairs, both, steps=100) > 0.55


def test_members_of_an_orbit_cannot_be_separated():
    pictures = torch.rand(4, 1, 5, 5)
    pairs, labels = torch.cat((pictures, pictures.rot90(1, (-2, -1)))), torch.arange(2).repeat_interleave(4)
    ours = network()
    assert statements.fit_labels(ours, pairs, labels, steps=60) == 0.5
    assert statements.orbit_gap(ours, pictures, "R4") < 1e-10
    plain = network(group="Z2")  # planted: no poses
    assert statements.fit_labels(plain, pairs, labels, steps=200) == 1
    assert statements.orbit_gap(plain, pictures, "R4") > 0.1


def test_planted_what_knows_no_positions_cannot_learn_them():
    """All pixels of a picture in another order are the same picture to it."""
    picture = torch.rand(1, 25)
    pictures = torch.stack([picture[:, torch.randperm(25)] for _ in range(8)]).view(8, 1, 5, 5)
    labels = torch.arange(8) // 2
    assert statements.fit_labels(network("constant"), pictures, labels, steps=30) == 0.25
    assert statements.fit_labels(network(), pictures, labels, steps=200) == 1


@pytest.mark.parametrize("group", ["R4", "R4M", "R8"])
def test_features_tell_how_a_picture_was_moved_and_logits_do_not(group):
    picture, ours = torch.rand(1, 1, 6, 6), network(group=group)
    exact = list(gsa.group(group).grid_elements)
    for element in exact:
        moved = gsa.group(group).act(picture, element)
        assert statements.told_elements(ours.forward_features, picture, moved, group) == [element]
        assert statements.told_elements(ours, picture, moved, group) == exact
    assert statements.told_elements(ours, picture, torch.rand(1, 1, 6, 6), group) == []  # planted: another picture
