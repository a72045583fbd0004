"""Layers that keep poses in another order than the group's are not to blame for what comes after them."""

import pytest
import torch
from torch import nn

import gsa
from gsa.symmetry import LayerReport

X = torch.rand(2, 1, 8, 8).double()


class Ordered(nn.Module):
    """Lifting, group convolution and a mean, whose features have their poses in an order of their own.

    Args:
        way: what is made of a feature [B, C, poses, H, W] after each layer.
        back: what leads back, before the next one.
        is_sound: whether the second layer treats all poses alike.
    """

    def __init__(self, way, back, is_sound=True):
        super().__init__()
        self.lift, self.conv = gsa.nn.LiftingConvolution("R4", 1, 4, 3), gsa.nn.GroupConvolution("R4", 4, 4, 3)
        self.back, loud = back, torch.ones(4) if is_sound else torch.arange(4.0)
        self.lift.register_forward_hook(lambda *called: way(called[2]))
        self.conv.register_forward_pre_hook(lambda _, given: back(given[0]))
        self.conv.register_forward_hook(lambda *called: way(called[2] * loud[:, None, None]))
        self.double()

    def forward(self, x):
        return self.back(self.conv(self.lift(x))).mean((2, 3, 4))


CLOCKWISE = [0, 3, 2, 1]


@pytest.mark.parametrize(("way", "back"), [
    (lambda f: f[:, :, CLOCKWISE], lambda f: f[:, :, CLOCKWISE]),
    (lambda f: f.flatten(1, 2), lambda f: f.unflatten(1, (4, -1))),
    (lambda f: f.transpose(1, 2).flatten(1, 2), lambda f: f.unflatten(1, (4, -1)).transpose(1, 2)),
])  # fmt: skip
def test_another_order_is_told_and_the_layer_that_is_wrong(way, back):
    """Planted: the second layer."""
    sound = LayerReport.of(Ordered(way, back), X, "R4")
    assert sound.broken == [] and "lift keeps it if its maps are in another order" in str(sound)
    assert "is the first that breaks it" not in str(sound)
    report = LayerReport.of(Ordered(way, back, is_sound=False), X, "R4")
    assert report.broken and report.first_broken[0] == "lift"
    assert "in another order (poses numbered otherwise, or among the channels); then conv is the first" in str(report)


def test_features_of_other_poses_are_told_of_where_what_follows_is_broken():
    """Planted: those of R4 under R4M, whose mirrors the first layer breaks."""
    network = nn.Sequential(
        gsa.nn.LiftingConvolution("R4", 1, 4, 3), nn.Flatten(2), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten()
    )
    report = LayerReport.of(network.double(), X, "R4M")
    assert "of features with other poses, 0 is the first that breaks it in any order" in str(report)


def test_what_is_right_or_broken_in_every_order_is_told_as_before():
    upright = nn.Sequential(gsa.nn.LiftingConvolution("R4", 1, 4, 3), nn.Conv3d(4, 4, (1, 3, 3))).double()
    report = LayerReport.of(upright, X, "R4")
    assert report.first_broken[0] == "1" and "order" not in str(report)
    assert not LayerReport.of(
        gsa.create_model("digits_gsa").double(), torch.rand(2, 1, 12, 12).double(), "R4"
    ).reordered


def test_parameters_that_are_zero_as_yet_are_named():
    """What they will break is not seen. Planted: positions of tokens; a bias says nothing."""

    class Positions(nn.Module):
        def __init__(self, start):
            super().__init__()
            self.places = nn.Parameter(torch.full((1, 1, 8, 8), start))
            self.gains = nn.Parameter(torch.zeros(3))

        def forward(self, x):
            return (x + self.places * torch.arange(64.0).view(8, 8)).square().mean((2, 3)) + self.gains

    report = LayerReport.of(Positions(0.0).double(), X, "R4")
    assert report.zero == ["places"] and "all zero as yet" in str(report) and not report.broken
    assert LayerReport.of(Positions(0.0).double(), X, "R4", backward=True).broken
    assert LayerReport.of(Positions(1.0).double(), X, "R4").zero == ()
