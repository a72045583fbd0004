"""Group convolutions against their definitions written out, and their equivariance."""

import operator

import pytest
import torch
import torch.nn.functional as F

import gsa
from gsa.nn import (
    AttentiveConvolution,
    FeatureAttention,
    GroupConvolution,
    LiftingConvolution,
    PosedAttention,
    SpatialPool,
)

GRID_GROUPS = ("Z2", "Z2M", "R2", "R4", "R2M", "R4M")


def entry(layer, moved_by, pose, u):
    """W(h⁻¹ m, h⁻¹ u) for all channels, from the definition: positions are rotated as numbers."""
    group, half = layer.group, (layer.kernel_size - 1) / 2
    x, y = u[1] - half, half - u[0]
    inverse = group.inverse[moved_by]
    x, y = (group.matrices[inverse] @ torch.tensor([x, y], dtype=torch.float64)).tolist()
    row, column = round(half - y), round(x + half)
    return layer.weight[:, :, group.product[inverse, pose] if layer.in_poses > 1 else 0, row, column]


def written_out(layer, x):
    """y(i, h) = Σ_u Σ_m W(h⁻¹ m, h⁻¹ u) x(i + u, m) + b, with loops."""
    x = F.pad(x, [layer.padding] * 4)
    x = x if x.ndim == 5 else x[:, :, None]
    k, step = layer.kernel_size, layer.dilation
    height, width = (side - step * (k - 1) for side in x.shape[-2:])
    y = torch.zeros(x.shape[0], layer.out_channels, layer.group.order, height, width)
    for h in range(layer.group.order):
        for m in range(layer.in_poses):
            for row in range(k):
                for column in range(k):
                    part = x[:, :, m, step * row : step * row + height, step * column : step * column + width]
                    y[:, :, h] += torch.einsum("oc,bcij->boij", entry(layer, h, m, (row, column)), part)
    return y if layer.bias is None else y + layer.bias[:, None, None, None]


@pytest.mark.parametrize("options", [{}, {"padding": 1, "bias": False}, {"dilation": 2}, {"kernel_size": 4}])
@pytest.mark.parametrize("group", GRID_GROUPS)
@pytest.mark.parametrize("lifting", [True, False])
def test_the_definition_written_out(group, lifting, options, float64):
    kind = LiftingConvolution if lifting else GroupConvolution
    layer = kind(group, 2, 3, **{"kernel_size": 3, **options})
    if layer.bias is not None:
        torch.nn.init.normal_(layer.bias)
    poses = () if lifting else (layer.group.order,)
    x = torch.randn(2, 2, *poses, 7, 6)
    torch.testing.assert_close(layer(x), written_out(layer, x), rtol=1e-12, atol=1e-12)


def layers(group, lifting):
    poses = {"lifting": True} if lifting else {}
    kind = LiftingConvolution if lifting else GroupConvolution
    return [
        kind(group, 3, 2, 3),
        kind(group, 3, 2, 4, padding=2),
        AttentiveConvolution(group, 3, 2, 3, hidden=2, attention_size=5, **poses),
        FeatureAttention(group, 3, 2, attention_size=3, dilation=2, **poses),
    ]


@pytest.mark.parametrize("group", GRID_GROUPS)
@pytest.mark.parametrize("lifting", [True, False])
def test_every_layer_is_exactly_equivariant(group, lifting, float64):
    group = gsa.group(group)
    x = torch.randn(1, 3, 8, 8) if lifting else torch.randn(1, 3, group.order, 8, 8)
    for layer in layers(group, lifting):
        errors = gsa.symmetry.equivariance_error(layer, x, group)
        assert max(errors.values()) <= 1e-12, layer


@pytest.mark.parametrize("attribute", ["relative", "convolution.moved", "spatial.moved"])
def test_attention_whose_weights_do_not_move_is_caught(attribute, float64):
    """Planted failure: one of the three sets of weights stays where it is while the pose turns."""
    layer = AttentiveConvolution("R4", 3, 2, 3, hidden=2, attention_size=5)
    table = operator.attrgetter(attribute)(layer)
    table.copy_(table[:1].expand_as(table).clone())
    with pytest.raises(AssertionError):
        gsa.symmetry.assert_equivariant(layer, torch.randn(1, 3, 4, 8, 8), "R4")


def test_attention_of_one_half_everywhere_takes_a_quarter(float64):
    """With its weights at zero every attention is σ(0) = ½, and 1 − ½·½ of the convolution is left."""
    layer = AttentiveConvolution("R4", 3, 2, 3, hidden=2)
    for weight in (layer.second, layer.spatial.weight):
        torch.nn.init.zeros_(weight)
    x = torch.randn(2, 3, 4, 8, 8)
    torch.testing.assert_close(layer(x), 0.75 * layer.convolution(x))
    attention = FeatureAttention("R4", 3, 2)
    for weight in (attention.second.weight, attention.spatial.weight):
        torch.nn.init.zeros_(weight)
    torch.testing.assert_close(attention(x), 0.75 * x)


def test_gradients_of_attention_turn_with_a_picture_on_an_even_background(float64, monkeypatch):
    torch.manual_seed(0)
    layer = AttentiveConvolution("R4M", 1, 6, 3, hidden=2, lifting=True)
    for weight in (layer.convolution.weight, layer.first, layer.second):
        weight.data.abs_()  # so that the background is largest, and counts
    picture = torch.ones(1, 1, 28, 28)
    picture[..., 6:15, 9:20] = torch.rand(9, 11)

    def error():
        return max(gsa.symmetry.gradient_errors(layer, picture, "R4M")["the input"].values())

    assert error() < 1e-12

    def first_found(filters, windows):
        return (filters @ windows).max(-1).values

    monkeypatch.setattr("gsa.nn._attentive_convolution._largest", first_found)  # planted: all to the first of them
    assert error() > 1e-4


def test_z2_is_an_ordinary_convolution():
    layer, x = LiftingConvolution("Z2", 3, 2, 3, padding=1), torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(layer(x)[:, :, 0], F.conv2d(x, layer.weight[:, :, 0], layer.bias, padding=1))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: GroupConvolution("R8", 1, 1, 3), "expected Z2, R2, R4 or one of these with M, but got R8"),
        (lambda: LiftingConvolution("R4", 1, 0, 3), "out_channels must be a positive integer, but got 0"),
        (
            lambda: LiftingConvolution("R4", 1, 1, 3, padding=-1),
            "padding must be a number of pixels, 0 or more, but got -1",
        ),
        (lambda: AttentiveConvolution("R4", 1, 1, 3, hidden=0), "hidden must be a positive integer"),
        (lambda: LiftingConvolution("R4", 1, 1, "3"), "kernel_size must be a positive integer, but got '3'"),
        (lambda: LiftingConvolution("R4", 1, 1, (3, 3)), "kernel_size must be a positive integer"),
        (lambda: LiftingConvolution("R4", 1, 1, 3, padding="same"), "padding must be a number of pixels"),
        (lambda: SpatialPool((2, 2)), "kernel must be a positive integer"),
        (lambda: FeatureAttention("R4", 1, 1, attention_size=4), "attention_size must be odd, but got 4"),
        (lambda: LiftingConvolution("R4", 12, 1, 3)(torch.rand(1, 3, 4, 9, 9)), r"images \[B, 12, H, W\], but got"),
        (lambda: GroupConvolution("R4", 8, 1, 3)(torch.rand(1, 4, 8, 9, 9)), r"\[B, 8, 4, H, W\] \(poses on axis 2\)"),
        (lambda: GroupConvolution("R4", 8, 1, 3)(torch.rand(1, 32, 9, 9)), r"but got the shape \[1, 32, 9, 9\]"),
        (lambda: AttentiveConvolution("R4", 8, 1, 3, hidden=1)(torch.rand(1, 8, 9, 9)), "takes features"),
        (lambda: FeatureAttention("R4", 8, 1)(torch.rand(1, 8, 9, 9)), "FeatureAttention over R4 takes features"),
        (lambda: FeatureAttention("R4", 8, 1, lifting=True)(torch.rand(1, 8, 4, 9, 9)), r"takes images \[B, 8, H, W\]"),
        (lambda: LiftingConvolution("R4", 1, 1, 5)(torch.rand(1, 1, 4, 9)), "maps of at least 5×5 pixels, but got 4×9"),
        (lambda: GroupConvolution("R4", 1, 1, 3, padding=1, dilation=2)(torch.rand(1, 1, 4, 9, 2)), "at least 3×3"),
        (lambda: AttentiveConvolution("R4", 1, 1, 5, hidden=1, lifting=True)(torch.rand(1, 1, 4, 4)), "at least 5×5"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_moved_filters_are_not_stored():
    assert list(GroupConvolution("R4", 1, 1, 3).state_dict()) == ["weight", "bias"]


@pytest.mark.parametrize("name", ["rotmnist_r4_cnn", "rotmnist_alpha_r4_cnn"])
def test_networks_made_on_the_meta_device_are_the_same_once_they_have_weights(name):
    whole, x = gsa.create_model(name).eval(), torch.rand(1, 1, 28, 28)
    with torch.device("meta"):
        assigned, emptied = (gsa.create_model(name).eval() for _ in range(2))
    assigned.load_state_dict(whole.state_dict(), assign=True)
    emptied.to_empty(device="cpu").load_state_dict(whole.state_dict())
    with torch.no_grad():
        for network in (assigned, emptied):
            torch.testing.assert_close(network(x), whole(x), rtol=0, atol=0)


@pytest.mark.parametrize("lifting", [True, False])
def test_attention_on_summands_written_out(lifting, float64):
    """Σ_c Σ_m (1 − α_C α_S) f for every output channel and pose on its own."""
    group = gsa.group("R4M")
    layer = AttentiveConvolution(group, 3, 2, 3, hidden=2, attention_size=5, lifting=lifting)
    poses = 1 if lifting else group.order
    x, y = torch.randn(2, 3, poses, 6, 7), torch.zeros(2, 2, group.order, 4, 5)
    filters, kernels = layer.convolution.filters(), layer.spatial.filters()
    for o in range(2):
        for h in range(group.order):
            for m in range(poses):
                f = F.conv2d(x[:, :, m], filters[o, h, :, m][:, None], groups=3)
                relative = 0 if lifting else group.product[group.inverse[h], m]
                inner = [(s @ layer.first[o, ..., relative].T).relu() for s in (f.mean((2, 3)), f.amax((2, 3)))]
                of_channels = (sum(inner) @ layer.second[o, ..., relative].T).sigmoid()[..., None, None]
                statistics = torch.stack([(of_channels * f).mean(1), (of_channels * f).amax(1)], 1)
                of_places = F.conv2d(statistics, kernels[o, h, :, m][None], padding=2).sigmoid()
                y[:, o, h] += ((1 - of_channels * of_places) * f).sum(1)
    torch.testing.assert_close(layer(x[:, :, 0] if lifting else x), y)


@pytest.mark.parametrize("lifting", [True, False])
def test_attention_on_features_written_out(lifting, float64):
    layer = FeatureAttention("R4", 3, 2, attention_size=3, lifting=lifting)
    x = torch.randn(2, 3, 1 if lifting else 4, 6, 7)
    inner = [layer.first(s(x, (-2, -1), keepdim=True)).relu() for s in (torch.mean, torch.amax)]
    of_channels = layer.second(sum(inner)).sigmoid()
    statistics = torch.stack([(of_channels * x).mean(1), (of_channels * x).amax(1)], 1)
    scores = layer.spatial(statistics[:, :, 0]).amax(2, keepdim=True) if lifting else layer.spatial(statistics)
    expected = (1 - of_channels * scores.sigmoid()) * x
    torch.testing.assert_close(layer(x[:, :, 0] if lifting else x), expected[:, :, 0] if lifting else expected)


@pytest.mark.parametrize("layer", [
    GroupConvolution("R4", 8, 256, 3), LiftingConvolution("R4", 32, 256, 3), PosedAttention("R4", 16, 512),
])  # fmt: skip
def test_weights_start_by_the_numbers_that_come_in(layer):
    fan_in = layer.weight[0].numel()
    assert layer.weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.05)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch's own, of rules that it lacks
def test_attentive_convolutions_are_mapped_over():
    layer, x = gsa.nn.AttentiveConvolution("R4", 2, 3, 3, 2).eval(), torch.rand(2, 1, 2, 4, 8, 8)
    torch.testing.assert_close(torch.func.vmap(layer)(x), torch.stack([layer(one) for one in x]))
