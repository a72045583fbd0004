"""Attention layers: arguments, shapes, and what they can express."""

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode

import gsa
from gsa.models._published import PublishedGroupTerm
from gsa.nn import (
    AttentionOptions,
    GroupSelfAttention,
    LiftingSelfAttention,
)
from gsa.symmetry import assert_equivariant


@pytest.mark.parametrize("group", ["Z2", "R4", "R8M"])
@pytest.mark.parametrize("neighbourhood", [1, 3, None])
def test_shapes(group, neighbourhood):
    order = gsa.group(group).order
    lifted = LiftingSelfAttention(group, 3, 5, 2, 6, neighbourhood)(torch.rand(2, 3, 4, 6))
    assert lifted.shape == (2, 5, order, 4, 6)
    assert GroupSelfAttention(group, 5, 7, 2, 6, neighbourhood)(lifted).shape == (2, 7, order, 4, 6)


def test_the_contract_of_arguments():
    group = gsa.group("R4")
    lift = gsa.nn.LiftingSelfAttention(
        group, 3, 8, num_heads=9, head_dim=10, neighbourhood=5,
        encoding="functional", attention_dropout=0.0, window="square",
    )  # fmt: skip
    layer = gsa.nn.GroupSelfAttention(
        group, 8, 8, num_heads=9, head_dim=10, neighbourhood=5,
        encoding="functional", form="summed", attention_dropout=0.0, window="square",
    )  # fmt: skip
    assert layer(lift(torch.rand(1, 3, 6, 6))).shape == (1, 8, 4, 6, 6)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"group": "R1"}, "a group is named"),
        ({"num_heads": 0}, "num_heads must be a positive integer, but got 0"),
        ({"num_heads": -2}, "num_heads must be a positive integer"),
        ({"head_dim": 0}, "head_dim must be a positive integer"),
        ({"in_channels": 0}, "in_channels must be a positive integer"),
        ({"out_channels": 2.0}, "out_channels must be a positive integer"),
        ({"neighbourhood": 4}, "odd number of pixels"),
        ({"form": "both"}, "form must be one of .* but got 'both'"),
        ({"encoding": "rotary", "form": "summed"}, "cannot serve form='summed'"),
        ({"encoding": "table", "group": "R8"}, "but got R8"),
        ({"attention_dropout": 1.0}, "attention_dropout must be a probability"),
        ({"value_dropout": -0.1}, "value_dropout must be a probability"),
        ({"window": "round"}, "window must be one of"),
    ],
)
def test_arguments_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        GroupSelfAttention(**{"group": "R4", "in_channels": 4, "out_channels": 4, **options})


def test_options_are_checked_where_they_are_made():
    with pytest.raises(ValueError, match="num_heads must be a positive integer, but got 0"):
        AttentionOptions(num_heads=0)
    with pytest.raises(ValueError, match="head_dim must be a positive integer, but got 2.5"):
        AttentionOptions(head_dim=2.5)
    with pytest.raises(ValueError, match=r"value_dropout must be a probability in \[0, 1\), but got 'half'"):
        AttentionOptions(value_dropout="half")
    with pytest.raises(ValueError, match="odd number of pixels"):
        AttentionOptions(neighbourhood=4)
    with pytest.raises(ValueError, match="window must be one of"):
        AttentionOptions(window="round")


def test_without_a_head_dim_heads_have_half_of_the_output_channels():
    assert GroupSelfAttention("R4", 6, 14, head_dim=None).head_dim == 7
    assert LiftingSelfAttention("R4", 1, 1, head_dim=None, encoding="constant").head_dim == 1


def test_layers_know_their_form():
    assert LiftingSelfAttention("R4", 1, 4).form == "lifting"
    assert [GroupSelfAttention("R4", 4, 4, form=form).form for form in gsa.ops.FORMS] == list(gsa.ops.FORMS)
    with pytest.raises(ValueError, match="form must be one of .* but got 'lifting'"):
        GroupSelfAttention("R4", 4, 4, form="lifting")


@pytest.mark.parametrize("shape", [(1, 4, 4, 6, 6), (1, 3, 5, 6, 6), (1, 3, 6, 6), (1, 4, 3, 6, 6)])
def test_features_that_do_not_fit_are_refused(shape):
    with pytest.raises(ValueError, match=r"over R4 takes features \[B, 3, 4, H, W\] \(poses on axis 2\), but got"):
        GroupSelfAttention("R4", 3, 3)(torch.rand(shape))


@pytest.mark.parametrize("shape", [(1, 4, 6, 6), (1, 3, 4, 6, 6), (3, 6, 6)])
def test_images_that_do_not_fit_are_refused(shape):
    with pytest.raises(ValueError, match=r"takes images \[B, 3, H, W\], but got the shape"):
        LiftingSelfAttention("R4", 3, 3)(torch.rand(shape))


@pytest.mark.parametrize("side", [5, None])
def test_maps_without_a_pixel_are_refused(side):
    with pytest.raises(ValueError, match=r"at least one pixel, but got the shape \[2, 3, 0, 4\]"):
        LiftingSelfAttention("R4", 3, 3, neighbourhood=side)(torch.rand(2, 3, 0, 4))


def test_an_image_smaller_than_the_window_sees_itself():
    assert_equivariant(LiftingSelfAttention("R4", 1, 2, 2, 6, neighbourhood=9), torch.rand(1, 1, 3, 3), gsa.group("R4"))


def test_enough_hard_heads_compute_any_group_convolution(float64):
    """n²|H| heads that each attend to one relative position and pose: self-attention contains the convolution.

    Cordonnier et al. 2020 for the plane; Romero & Cordonnier 2021 for groups.
    """
    group, n, channels, out_channels = gsa.group("R4"), 3, 3, 2
    heads, d = n * n * group.order, n * n + group.order
    kernel = torch.randn(out_channels, channels, group.order, n, n)  # ψ(h̃, u): rows of u first

    layer = GroupSelfAttention(group, channels, out_channels, heads, d, n, encoding="table", form="regular")
    with torch.no_grad():
        # Encodings are one-hot, in the offset and in the pose; each head asks for one of either, sharply.
        layer.encoding.table.copy_(torch.eye(d)[: n * n].view(n, n, d))
        layer.encoding.pose_vectors.copy_(torch.eye(d)[n * n :])
        layer.query_key_value.weight.zero_()
        layer.query_key_value.bias.zero_()
        query_bias = layer.query_key_value.bias[: heads * d].view(n * n, group.order, d)
        value = layer.query_key_value.weight[2 * heads * d :].view(n * n, group.order, d, channels)
        for offset in range(n * n):
            for pose in range(group.order):
                query_bias[offset, pose, [offset, n * n + pose]] = 200.0 * d**0.5
                value[offset, pose, :channels] = torch.eye(channels)
        out = layer.out.weight.view(out_channels, n * n, group.order, d)
        out.zero_()
        out[..., :channels] = kernel.permute(0, 3, 4, 2, 1).reshape(out_channels, n * n, group.order, channels)

    x = torch.randn(1, channels, group.order, 7, 7)
    convolved = torch.zeros(1, out_channels, group.order, 7, 7)
    for h in range(group.order):  # (x ⋆ ψ)(i, h) = Σ_{j,h̃} ψ(h⁻¹h̃, h⁻¹(j − i)) x(j, h̃)
        for m in range(group.order):
            turned = gsa.groups.act_on_plane(kernel[:, :, group.product[group.inverse[h], m]], group.matrices[h])
            convolved[:, :, h] += F.conv2d(x[:, :, m], turned, padding=1)
    inside = (..., slice(1, -1), slice(1, -1))  # at the border attention looks elsewhere, convolution sees zeros
    torch.testing.assert_close(layer(x)[inside], convolved[inside], rtol=0, atol=1e-6)


def test_dropout_acts_in_training_only():
    layer = GroupSelfAttention("R4", 2, 2, 2, 6, 3, attention_dropout=0.5, value_dropout=0.5)
    x = torch.rand(1, 2, 4, 5, 5)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


# Norms, pools, blocks.


@pytest.mark.parametrize("encoding", ["rotary", "fourier"])
@pytest.mark.parametrize("lifting", [True, False])
def test_global_attention_through_fused_kernels_equals_the_op(monkeypatch, encoding, lifting):
    options = {"num_heads": 2, "head_dim": 4, "neighbourhood": None, "encoding": encoding}
    if lifting:
        layer, x = LiftingSelfAttention("R4M", 3, 6, **options).double(), torch.randn(2, 3, 5, 7).double()
    else:
        layer = GroupSelfAttention("R4M", 6, 6, form="regular", **options).double()
        x = torch.randn(2, 6, 8, 5, 7).double()
    calls = []
    fused = gsa.ops.attend_everywhere
    monkeypatch.setattr(gsa.ops, "attend_everywhere", lambda *a, **k: calls.append(1) or fused(*a, **k))

    def run(prefers: bool):
        monkeypatch.setattr(gsa.ops, "prefers_fused", lambda device: prefers)
        output = layer(x)
        return output, torch.autograd.grad(output.square().sum(), layer.parameters())

    expected, gradients = run(False)
    assert not calls
    actual, others = run(True)
    assert calls
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(others, gradients)
    assert_equivariant(layer, x, "R4M")


def test_named_backends_and_dropout_keep_to_the_op(monkeypatch):
    monkeypatch.setattr("gsa.ops._registry.native.is_built", lambda: False)
    assert gsa.ops.prefers_fused(torch.device("cpu"))
    with gsa.ops.use("tiled"):
        assert not gsa.ops.prefers_fused(torch.device("cpu"))
    layer = GroupSelfAttention(
        "R4",
        4,
        4,
        num_heads=1,
        head_dim=4,
        neighbourhood=None,
        encoding="rotary",
        form="regular",
        attention_dropout=0.5,
    )
    monkeypatch.setattr(gsa.ops, "attend_everywhere", None)
    layer(torch.randn(1, 4, 4, 3, 3))  # in training, the masks are those of the op


@pytest.mark.parametrize("encoding", ["functional", "fourier", "quadratic", "rotary", "table", "constant"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_weights_of_another_dtype_may_be_put_in_place(encoding, dtype):
    """As mixed precision that casts parameters alone does."""
    layer = LiftingSelfAttention("R4", 2, 4, encoding=encoding, head_dim=8)
    weights = {name: p.to(dtype) for name, p in layer.named_parameters()}
    assert torch.func.functional_call(layer, weights, (torch.rand(1, 2, 5, 5, dtype=dtype),)).dtype == dtype


@pytest.mark.parametrize("encoding", ["functional", "quadratic", "rotary"])
def test_an_acted_encoding_is_of_every_pose(encoding):
    layer = LiftingSelfAttention("R4", 2, 4, encoding=encoding, head_dim=8, neighbourhood=3)
    assert layer.acted_encoding(5, 5).shape == (4, 3, 3, 8)


@pytest.mark.parametrize("name", ["digits_gsa", "digits_r4_sa"])
def test_networks_say_their_shapes_on_the_device_meta(name):
    network = gsa.create_model(name).to("meta")
    assert network(torch.rand(2, 1, 12, 12, device="meta")).shape == (2, 10)


@pytest.mark.parametrize("encoding", ["functional", "fourier", "rotary"])
def test_tables_lie_where_a_layer_is_made(encoding):
    """Made for a GPU, which is told by fake tensors here; on meta they keep their values for whoever loads weights."""
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"):
        layer = GroupSelfAttention("R4", 2, 4, encoding=encoding, head_dim=8)
    assert {t.device.type for t in (*layer.parameters(), *tables(layer))} == {"cuda"}
    with torch.device("meta"):
        layer = GroupSelfAttention("R4", 2, 4, encoding=encoding, head_dim=8)
    assert {t.device.type for t in tables(layer)} == {"cpu"}


def tables(layer):
    return layer.encoding.relative_pose, layer.encoding.inverse_matrices


@pytest.mark.parametrize("kind", [GroupSelfAttention, PublishedGroupTerm])
@pytest.mark.parametrize("option", ["attention_dropout", "value_dropout"])
def test_each_dropout_acts_in_training_only(kind, option):
    layer = kind("R4", 2, 2, 2, 6, 3, form="summed", **{option: 0.5})
    x = torch.rand(1, 2, 4, 5, 5)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_whole_numbers_are_refused():
    with pytest.raises(ValueError, match="as pictures / 255 are, but got torch.uint8"):
        LiftingSelfAttention("R4", 1, 2)(torch.zeros(1, 1, 5, 5, dtype=torch.uint8))


def test_the_scale_of_queries_is_that_of_their_weights():
    layer, x = GroupSelfAttention("R4", 2, 3, 2, 6, 3), torch.rand(1, 2, 4, 5, 5)
    layer.query_scale = 3.0
    scaled = layer(x)
    layer.query_scale = 1.0
    with torch.no_grad():
        layer.query_key_value.weight[: 2 * 6] *= 3
    torch.testing.assert_close(layer(x), scaled)
