"""Attention in the place of an ordinary convolution."""

import pytest
import torch
from torch import nn

import gsa
from gsa.nn import PosedAttention
from gsa.symmetry import assert_equivariant

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("border", ["hidden", "zeros"])
@pytest.mark.parametrize("group", ["Z2M", "R4", "R4M", "R8"])
def test_it_turns_with_the_picture(group, border):
    for channel_groups in (1, 2):
        layer = PosedAttention(group, 4, 6, neighbourhood=5, heads=7, border=border, channel_groups=channel_groups)
        nn.init.normal_(layer.encoding.offset)
        assert_equivariant(layer, torch.randn(2, 4, 8, 8), gsa.group(group))


@pytest.mark.parametrize("options", [
    {"kernel_size": 3, "padding": 1},
    {"kernel_size": 3, "padding": "same", "bias": False},
    {"kernel_size": 5, "padding": 2, "stride": 2},
    {"kernel_size": 3},
    {"kernel_size": 3, "padding": 1, "dilation": 2},
    {"kernel_size": 7, "padding": 3, "stride": 2, "bias": False},
    {"kernel_size": 3, "padding": 1, "groups": 2},
    {"kernel_size": 5, "padding": 2, "stride": 2, "groups": 4},
    {"kernel_size": 2, "dilation": 2},
])  # fmt: skip
def test_sharp_heads_are_the_convolution(options):
    """At the border, too, where pixels of zero lie around the picture; with hidden keys in the interior."""
    convolution = nn.Conv2d(4, 8, **options)
    x = torch.randn(2, 4, 17, 15)
    theirs = convolution(x)
    margin = -(-max(convolution.kernel_size) * max(convolution.dilation) // 2 // max(convolution.stride))
    inner = (..., slice(margin, -margin), slice(margin, -margin))
    for border, where in (("zeros", ...), ("hidden", inner)):
        layer = PosedAttention.of_convolution(convolution, "Z2", border)
        with torch.no_grad():
            layer.encoding.raw_sharpness.fill_(100.0)
        assert layer(x).shape == theirs.shape
        torch.testing.assert_close(layer(x)[where], theirs[where])
    if convolution.padding != (0, 0):
        assert (layer(x) - theirs).abs().max() > 0.01


@pytest.mark.parametrize("options", [
    {"kernel_size": 2, "stride": 2},
    {"kernel_size": 4, "stride": 4, "bias": False},
    {"kernel_size": 4, "stride": 2, "padding": 1, "groups": 2},
    {"kernel_size": 2},
    {"kernel_size": 2, "padding": 1},
    {"kernel_size": 4, "dilation": 3, "padding": 2},
    {"kernel_size": 16, "stride": 16},
])  # fmt: skip
def test_sharp_heads_of_even_sides_are_the_convolution_and_turn(options):
    convolution = nn.Conv2d(4, 8, **options)
    x = torch.randn(2, 4, 16, 16)
    layer = PosedAttention.of_convolution(convolution, "Z2")
    with torch.no_grad():
        layer.encoding.raw_sharpness.fill_(100.0)
    torch.testing.assert_close(layer(x), convolution(x))
    turned = PosedAttention.of_convolution(convolution, "R4M")
    nn.init.normal_(turned.encoding.offset)
    assert_equivariant(turned, x, gsa.group("R4M"))
    hidden = PosedAttention.of_convolution(convolution, "R4M", "hidden")
    hidden.load_state_dict(turned.state_dict())
    assert_equivariant(hidden, x, gsa.group("R4M"))
    if "padding" not in options:
        torch.testing.assert_close(hidden(x), turned(x))


STRIDED = [
    {"kernel_size": 3, "padding": 1, "stride": 2},
    {"kernel_size": 7, "padding": 3, "stride": 2, "bias": False},
    {"kernel_size": 1, "stride": 2},
    {"kernel_size": 7, "padding": 2, "stride": 4},
    {"kernel_size": 4, "padding": 1, "stride": 3, "groups": 2},
    {"kernel_size": 3, "dilation": 2, "padding": 2, "stride": 2},
    {"kernel_size": 3, "padding": 2, "stride": 2},
]


@pytest.mark.parametrize("height, width", [(16, 16), (17, 17), (15, 15), (18, 18), (16, 17), (17, 14)])
@pytest.mark.parametrize("options", STRIDED)
def test_strides_turn_on_sides_of_any_number_of_pixels(options, height, width):
    """In the pose of the identity they are those of the convolution."""
    convolution = nn.Conv2d(4, 8, **options)
    x = torch.randn(2, 4, height, width)
    plain = PosedAttention.of_convolution(convolution, "Z2")
    with torch.no_grad():
        plain.encoding.raw_sharpness.fill_(100.0)
    assert plain(x).shape == convolution(x).shape
    torch.testing.assert_close(plain(x), convolution(x))
    is_within = options.get("padding", 0) <= options["kernel_size"] * options.get("dilation", 1) // 2
    for border in ("zeros", "hidden") if is_within else ("zeros",):
        layer = PosedAttention.of_convolution(convolution, "R4M", border)
        nn.init.normal_(layer.encoding.offset)
        assert_equivariant(layer, x, gsa.group("R4M"), tolerance=1e-12)


def test_the_identity_is_one_of_the_poses():
    """In the pose of the identity a replaced convolution is what it was, to the sharpness of its heads."""
    convolution = nn.Conv2d(2, 3, 3, padding=1)
    x = torch.randn(4, 2, 9, 9)
    one = PosedAttention.of_convolution(convolution, "Z2")(x)[..., 1:-1, 1:-1]
    four = PosedAttention.of_convolution(convolution, "R4")(x)[..., 1:-1, 1:-1]
    assert (four >= one - 1e-12).all() and (four > one + 1e-3).any()
    assert (one - convolution(x)[..., 1:-1, 1:-1]).norm() / one.norm() < 0.3


@pytest.mark.parametrize("border", ["hidden", "zeros"])
def test_a_stride_asks_fewer_pixels_the_same(border):
    one, two = PosedAttention("R4", 2, 3, border=border), PosedAttention("R4", 2, 3, stride=2, border=border)
    two.load_state_dict(one.state_dict())
    for side in (7, 3, 1):
        x = torch.randn(2, 2, side, side + 2)
        torch.testing.assert_close(two(x), one(x)[..., ::2, ::2])


@pytest.mark.parametrize("border", ["hidden", "zeros"])
@pytest.mark.parametrize("channel_groups", [1, 3])
@pytest.mark.parametrize("side, stride", [(7, 2), (3, 2), (3, 1)])
def test_half_precision_is_near_to_full_precision(side, stride, channel_groups, border):
    """Single columns at the border, two pixels apart, were wrong or not finite on some processors."""
    torch.manual_seed(0)
    convolution = nn.Conv2d(3, 33, side, stride, side // 2, groups=channel_groups)
    layer, images = PosedAttention.of_convolution(convolution, "R4", border).float(), torch.rand(2, 3, 33, 33).float()
    with torch.autocast("cpu", torch.bfloat16):
        half = layer(images)
    assert (half - layer(images)).abs().max() < 0.02


def test_filters_keep_their_precision():
    convolution = nn.Conv2d(3, 4, 3, padding=1).double()
    nn.init.normal_(convolution.weight)
    weight = PosedAttention.of_convolution(convolution, "R4").weight
    assert torch.equal(weight, convolution.weight.flatten(2).transpose(1, 2))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_attention_is_of_the_dtype_of_the_convolution(dtype):
    layer = PosedAttention.of_convolution(nn.Conv2d(3, 4, 3, dtype=dtype), "R4")
    assert {parameter.dtype for parameter in layer.parameters()} == {dtype}


@pytest.mark.parametrize("options", [
    {"kernel_size": 2, "stride": 2},
    {"kernel_size": 4, "stride": 2, "padding": 1, "groups": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1},
    {"kernel_size": 3, "stride": 2, "bias": False},
    {"kernel_size": 3, "stride": 3, "output_padding": 2},
    {"kernel_size": 4, "stride": 4},
    {"kernel_size": 1, "stride": 2, "output_padding": 1},
    {"kernel_size": 3, "padding": 1},
    {"kernel_size": 3, "stride": 2, "dilation": 2, "padding": 1, "output_padding": 1},
])  # fmt: skip
def test_sharp_heads_are_the_transposed_convolution_and_turn(options):
    convolution = nn.ConvTranspose2d(4, 6, **options)
    x = torch.randn(2, 4, 5, 7)
    plain = PosedAttention.of_convolution(convolution, "Z2")
    with torch.no_grad():
        plain.encoding.raw_sharpness.fill_(100.0)
    assert f"spread={plain.spread}" in repr(plain) or plain.spread == 1
    torch.testing.assert_close(plain(x), convolution(x))
    turned = PosedAttention.of_convolution(convolution, "R4M")
    nn.init.normal_(turned.encoding.offset)
    assert_equivariant(turned, x, gsa.group("R4M"), tolerance=1e-12)
    with torch.no_grad():
        by_torch = torch.linalg.norm(convolution(x.rot90(1, (2, 3))) - convolution(x).rot90(1, (2, 3)))
    assert by_torch > 0.1


def test_one_pixel_is_asked_in_one_pose_only(monkeypatch):
    """All of them answer alike."""
    layer = PosedAttention.of_convolution(nn.Conv2d(2, 3, 1, stride=2), "R4M")
    asked, attend = [], gsa.ops.attend_by_position
    monkeypatch.setattr(
        gsa.ops, "attend_by_position", lambda x, s, *a, **k: asked.append(s.shape) or attend(x, s, *a, **k)
    )
    layer(torch.randn(1, 2, 5, 5)), layer(torch.randn(1, 2, 6, 6)), layer(torch.randn(1, 2, 5, 6))
    assert asked == [(1, 1, 1, 1, 1), (1, 8, 1, 2, 2), (1, 8, 1, 1, 2)]


def test_sides_of_which_one_leaves_pixels_over_learn_alike():
    """Gradients turn, too, of a picture that is no square."""
    layer = PosedAttention.of_convolution(nn.Conv2d(2, 3, 3, stride=2, padding=1), "R4")
    x = torch.randn(2, 2, 7, 10)
    weight = torch.randn(2, 3, 4, 5)
    found = [
        torch.autograd.grad((layer(x.rot90(k, (2, 3))) * weight.rot90(k, (2, 3))).sum(), list(layer.parameters()))
        for k in (0, 1)
    ]
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_a_transposed_convolution_is_told_the_size_that_it_has():
    layer, x = PosedAttention.of_convolution(nn.ConvTranspose2d(2, 3, 2, stride=2), "R4"), torch.randn(1, 2, 4, 5)
    assert torch.equal(layer(x, output_size=[8, 10]), layer(x)) and torch.equal(layer(x, [1, 3, 8, 10]), layer(x))
    with pytest.raises(ValueError, match=r"expected output_size=\[8, 10\] here, but got \[9, 10\]"):
        layer(x, output_size=[9, 10])


@pytest.mark.parametrize("group", ["Z2", "R4M"])
def test_what_is_answered_may_be_changed_in_place(group):
    """As the activations of most networks do."""
    convolution, x = nn.Conv2d(2, 3, 3), torch.rand(2, 2, 6, 6, requires_grad=True)
    answers = nn.Sequential(PosedAttention.of_convolution(convolution, group), nn.ReLU(inplace=True))
    found, expected = (
        torch.autograd.grad(net(x).square().sum(), x)[0] for net in (answers, nn.Sequential(answers[0], nn.ReLU()))
    )
    torch.testing.assert_close(found, expected)
