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


def test_random_labels_of_orbits_are_learned():
    pictures, labels, ours = torch.rand(16, 1, 6, 6), torch.randint(4, (16,)), network()
    assert statements.fit_labels(ours, pictures, labels, steps=0) < 0.6
    assert statements.fit_labels(ours, pictures, labels, steps=200) == 1
    assert statements.orbit_gap(ours, pictures, "R4") < 1e-10


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
