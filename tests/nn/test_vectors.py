"""Vectors of features with poses, and features of vectors, against their formulas; networks that answer vectors."""

import math

import pytest
import torch
from torch import nn

import gsa
from gsa.nn import GroupSelfAttention, LiftingConvolution, OrbitPooling, PosesToVectors, VectorsToPoses
from gsa.symmetry import GroupAction, assert_equivariant, equivariance_error
from tests.conftest import ALL_GROUPS

pytestmark = pytest.mark.usefixtures("float64")
FOLDS = (1, 2, 3)


@pytest.mark.parametrize("group", ALL_GROUPS)
@pytest.mark.parametrize("fold", FOLDS)
def test_vectors_are_the_mean_of_the_turned_ones_of_all_poses(group, fold):
    matrices, feature = gsa.group(group).representation(fold), torch.randn(2, 6, gsa.group(group).order, 3, 4)
    expected = torch.zeros(2, 6, 3, 4)
    for pair in range(3):
        for pose, matrix in enumerate(matrices):
            x, y = feature[:, 2 * pair, pose], feature[:, 2 * pair + 1, pose]
            expected[:, 2 * pair] += (matrix[0, 0] * x + matrix[0, 1] * y) / len(matrices)
            expected[:, 2 * pair + 1] += (matrix[1, 0] * x + matrix[1, 1] * y) / len(matrices)
    vectors = PosesToVectors(group, fold)
    torch.testing.assert_close(vectors(feature), expected)
    torch.testing.assert_close(vectors(feature.mean((-1, -2))), expected.mean((-1, -2)))
    torch.testing.assert_close(vectors.float().double()(feature), expected)  # nothing is rounded in between
    torch.testing.assert_close(vectors.float()(feature), expected)
    torch.testing.assert_close(vectors.half()(feature.half()), expected.half(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("group", ALL_GROUPS)
@pytest.mark.parametrize("fold", FOLDS)
def test_both_ways_commute_with_the_group_and_lead_back(group, fold):
    act = gsa.group(group).act
    to_poses, to_vectors = VectorsToPoses(group, fold), PosesToVectors(group, fold)
    fields, feature = torch.randn(2, 4, 5, 5), torch.randn(2, 4, gsa.group(group).order, 5, 5)
    torch.testing.assert_close(to_vectors(to_poses(fields)), fields)
    moving = GroupAction(group, "vectors", "vectors", fold)
    for g in gsa.group(group).grid_elements:
        torch.testing.assert_close(to_poses(moving.act(fields, g)), act(to_poses(fields), g))
        torch.testing.assert_close(to_vectors(act(feature, g)), moving.moved(to_vectors(feature), g, feature.shape))


@pytest.mark.parametrize("group, fold", [("R4", 1), ("R4", 2), ("R2M", 1), ("Z2M", 1), ("R8M", 2), ("Z2", 1)])
def test_a_network_of_vectors_to_vectors_commutes_with_the_group(group, fold):
    network = nn.Sequential(
        VectorsToPoses(group, fold), GroupSelfAttention(group, 4, 6, 3, 3), nn.Conv3d(6, 2, 1),
        PosesToVectors(group, fold),
    )  # fmt: skip
    x = torch.rand(2, 4, 6, 6)
    if group == "Z2":
        assert network(x).shape == (2, 2, 6, 6)
        return
    assert_equivariant(network, x, GroupAction(group, "vectors", "vectors", fold))
    with pytest.raises(AssertionError, match="not equivariant"):  # planted: their components as scalars
        assert_equivariant(network, x, group)


def test_the_angle_of_an_edge_turns_with_it():
    """The gradient of brightness, of two heads for x and y: the direction in which it is brighter."""
    network = nn.Sequential(LiftingConvolution("R4", 1, 2, 3), PosesToVectors("R4"))
    with torch.no_grad():
        network[0].weight.zero_()
        network[0].weight[0, ..., 1, 2], network[0].weight[0, ..., 1, 0] = 1, -1  # x: right less left
        network[0].bias.zero_()
    rows, columns = torch.meshgrid(torch.arange(9.0), torch.arange(9.0), indexing="ij")
    for angle in (0, 30, 90, 200):
        towards = math.radians(angle)
        ramp = columns * math.cos(towards) - rows * math.sin(towards)  # rows run down, y up
        x, y = network(ramp[None, None])[0, :, 4, 4].tolist()
        assert math.degrees(math.atan2(y, x)) % 360 == pytest.approx(angle, abs=1e-9)


def test_one_channel_a_vector_would_lie_on_a_line_in_groups_that_turn_by_a_half():
    """Why two channels make one: a fixed direction in every pose, e₁, is all that a single one could have."""
    feature = torch.randn(50, 1, 2, 1, 1)
    of_one = PosesToVectors("R2")(torch.cat((feature, torch.zeros_like(feature)), 1)).flatten(1)
    of_two = PosesToVectors("R2")(torch.randn(50, 2, 2, 1, 1)).flatten(1)
    assert torch.linalg.matrix_rank(of_one) == 1 and torch.linalg.matrix_rank(of_two) == 2


@pytest.mark.parametrize("group", ["R4", "R4M", "Z2M"])
@pytest.mark.parametrize("fold", FOLDS)
def test_any_network_answers_vectors_that_turn(group, fold):
    x = torch.rand(2, 1, 7, 7)
    answers = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(75, 4))
    for network in (answers, nn.Conv2d(1, 4, 3)):
        action = GroupAction(group, outputs="vectors", fold=fold)
        assert max(equivariance_error(network, x, action).values()) > 1e-2
        assert_equivariant(OrbitPooling(network, group, "mean", "vectors", fold), x, action, 1e-12)
    one = OrbitPooling(nn.Conv2d(1, 2, 1), "R4", "mean", "vectors")  # without a direction of its own
    torch.testing.assert_close(one(x), torch.zeros(2, 2, 7, 7))


def test_what_are_no_vectors_is_refused():
    for wrong, message in (
        (lambda: PosesToVectors("R4")(torch.rand(1, 3, 4, 5, 5)), r"features \[B, 2K, 4, …\], two channels each"),
        (lambda: PosesToVectors("R4")(torch.rand(1, 2, 8, 5, 5)), r"but got the shape \[1, 2, 8, 5, 5\]"),
        (lambda: PosesToVectors("R4")(torch.ones(1, 2, 4, dtype=torch.int64)), "floating"),
        (lambda: VectorsToPoses("R4")(torch.rand(1, 3, 5, 5)), r"maps \[B, 2K, H, W\], two channels each"),
        (lambda: VectorsToPoses("R4")(torch.rand(1, 2, 4, 5, 5)), r"but got the shape \[1, 2, 4, 5, 5\]"),
        (lambda: PosesToVectors("R4", fold=0), "fold must be a positive integer, but got 0"),
        (lambda: OrbitPooling(nn.Conv2d(1, 2, 1), "R4", outputs="vectors"), "outputs='vectors' needs kind='mean'"),
        (lambda: OrbitPooling(nn.Conv2d(1, 3, 1), "R4", "mean", "vectors")(torch.rand(1, 1, 5, 5)), "two channels"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    assert repr(PosesToVectors("R4M", 2)) == "PosesToVectors(R4M, fold=2)"
