"""Fields of features with poses, and features of fields, against their formulas; networks that answer vectors."""

import math

import pytest
import torch
from torch import nn

import gsa
from gsa.nn import FieldsToPoses, GroupSelfAttention, LiftingConvolution, OrbitPooling, PosesToFields
from gsa.symmetry import GroupAction, LayerReport, assert_equivariant, equivariance_error
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
    vectors = PosesToFields(group, fold)
    torch.testing.assert_close(vectors(feature), expected)
    torch.testing.assert_close(vectors(feature.mean((-1, -2))), expected.mean((-1, -2)))
    torch.testing.assert_close(vectors.float().double()(feature), expected)  # nothing is rounded in between
    torch.testing.assert_close(vectors.float()(feature), expected)
    torch.testing.assert_close(vectors.half()(feature.half()), expected.half(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("group", ALL_GROUPS)
@pytest.mark.parametrize("fold", FOLDS)
def test_both_ways_commute_with_the_group_and_lead_back(group, fold):
    act = gsa.group(group).act
    to_poses, to_vectors = FieldsToPoses(group, fold), PosesToFields(group, fold)
    fields, feature = torch.randn(2, 4, 5, 5), torch.randn(2, 4, gsa.group(group).order, 5, 5)
    torch.testing.assert_close(to_vectors(to_poses(fields)), fields)
    moving = GroupAction(group, fold, fold)
    for g in gsa.group(group).grid_elements:
        torch.testing.assert_close(to_poses(moving.act(fields, g)), act(to_poses(fields), g))
        torch.testing.assert_close(to_vectors(act(feature, g)), moving.moved(to_vectors(feature), g, feature.shape))


@pytest.mark.parametrize("group, fold", [("R4", 1), ("R4", 2), ("R2M", 1), ("Z2M", 1), ("R8M", 2), ("Z2", 1)])
def test_a_network_of_vectors_to_vectors_commutes_with_the_group(group, fold):
    network = nn.Sequential(
        FieldsToPoses(group, fold), GroupSelfAttention(group, 4, 6, 3, 3), nn.Conv3d(6, 2, 1),
        PosesToFields(group, fold),
    )  # fmt: skip
    x = torch.rand(2, 4, 6, 6)
    if group == "Z2":
        assert network(x).shape == (2, 2, 6, 6)
        return
    assert_equivariant(network, x, GroupAction(group, fold, fold))
    with pytest.raises(AssertionError, match="not equivariant"):  # planted: their components as scalars
        assert_equivariant(network, x, group)


def test_the_angle_of_an_edge_turns_with_it():
    """The gradient of brightness, of two heads for x and y: the direction in which it is brighter."""
    network = nn.Sequential(LiftingConvolution("R4", 1, 2, 3), PosesToFields("R4"))
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
    of_one = PosesToFields("R2")(torch.cat((feature, torch.zeros_like(feature)), 1)).flatten(1)
    of_two = PosesToFields("R2")(torch.randn(50, 2, 2, 1, 1)).flatten(1)
    assert torch.linalg.matrix_rank(of_one) == 1 and torch.linalg.matrix_rank(of_two) == 2


@pytest.mark.parametrize("group", ["R4", "R4M", "Z2M"])
@pytest.mark.parametrize("fold", FOLDS)
def test_any_network_answers_vectors_that_turn(group, fold):
    x = torch.rand(2, 1, 7, 7)
    answers = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(75, 4))
    for network in (answers, nn.Conv2d(1, 4, 3)):
        action = GroupAction(group, outputs=fold)
        assert max(equivariance_error(network, x, action).values()) > 1e-2
        assert_equivariant(OrbitPooling(network, group, "mean", fold), x, action, 1e-12)
    one = OrbitPooling(nn.Conv2d(1, 2, 1), "R4", "mean", "vector")  # without a direction of its own
    torch.testing.assert_close(one(x), torch.zeros(2, 2, 7, 7))


@pytest.mark.parametrize("group", ["R4", "R4M", "Z2M"])
def test_any_network_takes_vectors(group):
    """Planted: of which it is not told."""
    network, x, wind = nn.Conv2d(3, 2, 3), torch.randn(2, 3, 6, 7), ["vector", "scalar"]
    for outputs in ("vector", "pseudoscalar"):
        action = GroupAction(group, wind, outputs)
        assert_equivariant(OrbitPooling(network, group, "mean", outputs, wind), x, action, 1e-12)
        assert max(equivariance_error(OrbitPooling(network, group, "mean", outputs), x, action).values()) > 1e-2
    assert_equivariant(OrbitPooling(network, group, inputs=wind), x, GroupAction(group, wind), 1e-12)


@pytest.mark.parametrize("group", ["R4M", "Z2M", "R4", "R2"])
def test_fields_of_several_kinds_are_made_and_judged_together(group):
    """Planted: two kinds in each other's place; the whole is broken, and no layer is blamed for what it keeps."""
    field = ["scalar", "pair", "pair*vector", "pseudoscalar", "axis"]
    network = nn.Sequential(
        LiftingConvolution(group, 1, 4, 3), nn.SiLU(), nn.Conv3d(4, 10, 1), PosesToFields(group, field), nn.Identity()
    )
    x, action = torch.rand(2, 1, 7, 7), GroupAction(group, outputs=field)
    assert_equivariant(network, x, action)
    assert not LayerReport.of(network, x, action).broken
    taken = GroupAction(group, inputs=field)
    taking = nn.Sequential(nn.Identity(), FieldsToPoses(group, field), nn.Conv3d(10, 2, 1), nn.SiLU())
    assert not LayerReport.of(taking, torch.rand(2, 10, 7, 7), taken).broken
    with pytest.raises(AssertionError):
        assert_equivariant(network, x, GroupAction(group, outputs=[*field[1:], field[0]]))
    heads = nn.Sequential(LiftingConvolution(group, 1, 2, 3), TwoHeads(group))
    report = LayerReport.of(heads, x, GroupAction(group, outputs=["vector", "axis"]))
    assert not report.broken and report.first_broken is None


class TwoHeads(nn.Module):
    def __init__(self, group):
        super().__init__()
        self.vector, self.axis = PosesToFields(group, "vector"), PosesToFields(group, "axis")

    def forward(self, feature):
        return torch.cat((self.vector(feature), self.axis(feature)), 1)


def test_a_left_and_a_right_that_are_scalars_are_one_in_groups_with_mirrors():
    """Why there are pairs: maps that a mirror does not exchange answer alike for a picture and its mirror image."""
    x = torch.rand(1, 1, 7, 7)
    both = torch.cat((x, x.flip(-1)))
    lifting = nn.Sequential(LiftingConvolution("R4M", 1, 2, 3), nn.SiLU())
    left, right = PosesToFields("R4M", "pair")(lifting(both)).mean((-1, -2)).T
    assert not torch.isclose(left[0], right[0])
    torch.testing.assert_close(left, right.flip(0))
    scalars = PosesToFields("R4M", "scalar")(lifting(both)).mean((-1, -2))
    torch.testing.assert_close(scalars[0], scalars[1])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9, 17])
@pytest.mark.parametrize("group", ["R2", "R4", "Z2M"])
def test_points_are_vectors_in_rows(group, count):
    """[B, K, 2] of any number, such as 4 × 4, or as many as there are poses. Planted: counted from another place."""

    def points(x):
        logits = network(x)
        maps = logits.flatten(2).softmax(-1).view_as(logits)
        rows, columns = (torch.arange(side) - (side - 1) / 2 for side in maps.shape[-2:])
        return torch.stack(((maps.sum(2) * columns).sum(-1), -(maps.sum(3) * rows).sum(-1)), -1)

    network = nn.Sequential(LiftingConvolution(group, 1, 3, 3), nn.Conv3d(3, count, 1), SpreadOut())
    x, action = torch.rand(2, 1, 6, 6), GroupAction(group, outputs="vector")
    assert points(x).shape == (2, count, 2)
    assert_equivariant(points, x, action)
    assert_equivariant(lambda x: points(x).flatten(1), x, action)
    with pytest.raises(AssertionError):
        assert_equivariant(lambda x: points(x) + 1, x, action)


class SpreadOut(nn.Module):
    def forward(self, feature):
        return 20 * feature.mean(2)


def test_what_forgets_to_turn_is_no_field():
    """A feature with poses has numbers in twos, too, and moves rightly, as something else; so do tokens."""
    x, lifting = torch.rand(2, 1, 6, 6), LiftingConvolution("R4", 1, 2, 3)
    action = GroupAction("R4", outputs="vector")
    for forgot in (lifting, nn.Sequential(lifting, nn.AdaptiveAvgPool3d((None, 1, 1)), nn.Flatten(2)),
                   lambda x: lifting(x).flatten(2).mT.repeat(1, 1, 2)):  # fmt: skip
        with pytest.raises(ValueError, match=r"fields, 'vector': \[B, 2·K\], \[B, K, 2\] or maps .*PosesToFields"):
            assert_equivariant(forgot, x, action)
    with pytest.raises(ValueError, match=r"inputs are fields, 'vector', of 2 channels each, but got"):
        assert_equivariant(lifting, x, GroupAction("R4", "vector"))


def test_what_are_no_fields_is_refused():
    for wrong, message in (
        (
            lambda: PosesToFields("R4")(torch.rand(1, 3, 4, 5, 5)),
            r"'vector': 2 channels each\) .* features \[B, 2·K, 4, …\]",
        ),
        (lambda: PosesToFields("R4")(torch.rand(1, 2, 8, 5, 5)), r"but got the shape \[1, 2, 8, 5, 5\]"),
        (lambda: PosesToFields("R4")(torch.ones(1, 2, 4, dtype=torch.int64)), "floating"),
        (lambda: FieldsToPoses("R4")(torch.rand(1, 3, 5, 5)), r"are maps \[B, 2·K, H, W\]"),
        (lambda: FieldsToPoses("R4")(torch.rand(1, 2, 4, 5, 5)), r"but got the shape \[1, 2, 4, 5, 5\]"),
        (lambda: PosesToFields("R4", 0), "the fold of directions .* but got 0"),
        (lambda: OrbitPooling(nn.Conv2d(1, 2, 1), "R4", outputs="vector"), "outputs='vector' needs kind='mean'"),
        (lambda: OrbitPooling(nn.Conv2d(1, 3, 1), "R4", "mean", "vector")(torch.rand(1, 1, 5, 5)), "2 channels each"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    assert repr(PosesToFields("R4M", "axis")) == "PosesToFields(R4M, 'axis')"
