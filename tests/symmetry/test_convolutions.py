"""Group self-attention expresses group convolutions, and where it does not."""

import pytest
import torch

import gsa
from gsa.encodings import Neighbourhood, QuadraticEncoding
from gsa.nn import GroupConvolution, GroupSelfAttention, LiftingConvolution
from gsa.symmetry import statements

pytestmark = pytest.mark.usefixtures("float64")


def pair(kind, group="R4", side=3, **options):
    """A convolution with a bias, and what it takes."""
    convolution = kind(group, 2, 3, side, **options)
    torch.nn.init.normal_(convolution.bias)
    return convolution, torch.randn(2, 2, *((gsa.group(group).order,) if kind is GroupConvolution else ()), 11, 10)


@pytest.mark.parametrize("group", ["Z2", "Z2M", "R4", "R2M", "R4M"])
@pytest.mark.parametrize("kind", [LiftingConvolution, GroupConvolution])
def test_any_group_convolution_is_self_attention(kind, group):
    for options in ({}, {"padding": 1}, {"dilation": 2}, {"side": 5, "padding": 1}):
        convolution, x = pair(kind, group, **options)
        assert statements.expression_error(convolution, x) < 1e-14
        assert statements.as_self_attention(convolution)(x).shape == convolution(x).shape


def test_wide_filters_too_and_the_weights_of_the_op_itself():
    assert statements.expression_error(*pair(LiftingConvolution, "Z2M", side=9)) < 1e-14  # no convolution inside
    convolution, x = pair(GroupConvolution)
    maps = statements.as_self_attention(convolution).attention(x)  # [B, heads, |H|, H, W, U, V], in float64
    assert (maps.flatten(5).amax(-1) - 1).abs().max() < 1e-12  # every head looks at one pixel


def test_how_sharp_is_sharp_enough():
    convolution, x = pair(GroupConvolution, "R4M")
    assert statements.expression_error(convolution, x, sharpness=18) < 1e-6
    assert statements.expression_error(convolution, x, sharpness=100) < 1e-14
    assert statements.expression_error(convolution, x, sharpness=5) > 1e-3  # planted: soft heads
    assert statements.expression_error(convolution.float(), x.float(), sharpness=100) < 1e-6


def test_planted_a_head_in_another_place_or_pose():
    convolution, x = pair(GroupConvolution)
    for name in ("offset", "preference"):
        layer = statements.as_self_attention(convolution)
        getattr(layer.encoding, name).data[0].neg_()
        assert gsa.symmetry.relative_error(layer(x), convolution(x)) > 1e-2, name


@pytest.mark.parametrize("options, message", [
    ({"side": 4}, "odd sides and a padding of at most 1 pixels here, but got the side 4"),
    ({"padding": 2}, "at most 1 pixels here, but got the side 3 and a padding of 2"),
])  # fmt: skip
def test_what_is_not_expressed_is_refused(options, message):
    convolution, _ = pair(GroupConvolution, **options)
    with pytest.raises(ValueError, match=message):
        statements.as_self_attention(convolution)
    with pytest.raises(ValueError, match=r"sharpness must be in \(0, 100\], but got 0"):
        statements.as_self_attention(pair(GroupConvolution)[0], sharpness=0)


@pytest.mark.parametrize("encoding", ["functional", "fourier", "table", "quadratic"])
@pytest.mark.parametrize("group", ["Z2M", "R4", "R4M"])
def test_the_summed_form_cannot(group, encoding):
    x = torch.randn(2, 4, gsa.group(group).order, 6, 6)
    summed, regular = (GroupSelfAttention(group, 4, 4, 9, 10, 3, encoding, form) for form in ("summed", "regular"))
    assert statements.pose_dependence(summed, x) < 1e-14
    assert statements.pose_dependence(regular, x) > 1e-2  # planted: where the limit is not
    assert statements.pose_dependence(GroupConvolution(group, 4, 4, 3), x) > 0.3


def heads(group, count, pixels=2.0):
    """Heads of all sharpnesses at random places and poses."""
    encoding = QuadraticEncoding(gsa.group(group), 8, count, Neighbourhood(3))
    torch.nn.init.uniform_(encoding.offset, -pixels, pixels)
    torch.nn.init.uniform_(encoding.raw_sharpness, 1, 10)
    torch.nn.init.normal_(encoding.preference, std=4)
    return encoding


def random_function(poses):
    """ψ of continuous offsets: cosines, too fast to be alike at two places of the window."""
    frequencies, phases, mix = 6 * torch.randn(64, 2), 6 * torch.rand(64), torch.randn(64, poses)
    return lambda offsets: (offsets @ frequencies.T + phases).cos() @ mix


@pytest.mark.parametrize("group, least, most", [("R4", 0, 1e-13), ("Z2M", 0, 1e-13), ("R8", 0.02, 0.4)])
def test_heads_that_are_normalised_keep_kernel_sums(group, least, most):
    order = gsa.group(group).order
    interpolated = statements.moved_filters(group, torch.randn(order, 3, 3))
    sampled = statements.sampled_filters(group, random_function(order), 3)
    for kernel in (interpolated, sampled):
        law = statements.kernel_sum_residual(group, kernel)
        assert least <= law < most
        found = statements.head_residual(heads(group, 1500), kernel)
        assert found == pytest.approx(law, abs=1e-12)
        fewer = statements.head_residual(heads(group, 4 * order), kernel)  # planted: too few heads for the filter
        assert fewer > law + 1e-2


class Joint:
    """Heads with scores of offset and pose together."""

    def __init__(self, group, count):
        functions = (random_function(gsa.group(group).order) for _ in range(count))
        self.scores = torch.stack([statements.sampled_filters(group, function, 3) for function in functions])

    def position_scores(self, *_):
        return self.scores


def test_scores_of_offset_and_pose_together_keep_one_sum():
    kernel = statements.sampled_filters("R8", random_function(8), 3)
    joint, apart = (statements.kernel_sum_residual("R8", kernel, joint) for joint in (True, False))
    assert statements.head_residual(Joint("R8", 300), kernel) == pytest.approx(joint, abs=1e-12)
    assert 1e-3 < joint < apart - 1e-2


def test_filters_on_the_grid_are_those_of_the_convolution():
    convolution = GroupConvolution("R4M", 1, 1, 3)
    moved = statements.moved_filters("R4M", convolution.weight[0, 0])
    torch.testing.assert_close(moved, convolution.filters()[0, :, 0])


@pytest.mark.parametrize("neighbourhood, pixels", [(3, 9), (5, 25), (9, 81), (None, 169)])
def test_attention_sees_further_for_no_more_parameters(neighbourhood, pixels):
    x = torch.randn(1, 4, 4, 13, 13)
    layer = GroupSelfAttention("R4", 4, 4, 2, 8, neighbourhood, "functional", "regular")
    assert statements.receptive_field(layer, x) == pixels
    assert sum(weight.numel() for weight in layer.parameters()) == 520
    side = neighbourhood or 13
    convolution = GroupConvolution("R4", 4, 4, side, padding=side // 2)
    assert statements.receptive_field(convolution, x) == pixels
    assert sum(weight.numel() for weight in convolution.parameters()) == 4 * 4 * 4 * pixels + 4
    narrow = GroupSelfAttention("R4", 4, 4, 2, 8, 3, "functional", "regular")
    assert (statements.receptive_field(narrow, x) == pixels) is (neighbourhood == 3)  # planted: a 3×3 window
