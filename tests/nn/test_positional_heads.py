"""Heads that attend by position alone: computed as a convolution or as matrices, equal to the op at every pixel."""

from itertools import product

import pytest
import torch
import torch.nn.functional as F

import gsa
from gsa.nn import AttentionOptions, GroupSelfAttention, LiftingSelfAttention, crop_border
from gsa.symmetry import assert_equivariant, equivariance_error, translation_error

pytestmark = pytest.mark.usefixtures("float64")


def layer(form, heads, positional, group="R4", head_dim=8, **options):
    keywords = {"num_heads": heads, "positional_heads": positional, "head_dim": head_dim, "encoding": "quadratic"}
    kind, form = (LiftingSelfAttention, {}) if form == "lifting" else (GroupSelfAttention, {"form": form})
    made = kind(group, 2, 3, **keywords | form | options)
    torch.nn.init.normal_(made.out.weight)  # heads with content speak, too
    for parameter in made.encoding.parameters():
        torch.nn.init.normal_(parameter)
    return made


@pytest.fixture(params=[False, True], ids=["convolution", "matrices"])
def computed(request, monkeypatch):
    """Either way of computing heads by position, whichever has fewer products."""
    monkeypatch.setattr("gsa.ops._by_position._prefers_matrices", lambda *_: request.param)


def picture(form, group="R4", height=9, width=8):
    return torch.randn(2, 2, *(() if form == "lifting" else (gsa.group(group).order,)), height, width)


def by_the_op(made, x):
    """The layer written out: positional heads are heads whose queries and keys have no content."""
    features = made._padded(made._prepared(x))
    positional, d = made.positional_heads, made.head_dim
    shape = (len(x), made.num_heads, *features.shape[2:])
    query, key = (torch.zeros(*shape, made.encoding.key_dim) for _ in range(2))
    value = torch.zeros(*shape, d)
    if positional:
        value[:, :positional] = made.positional_value(features).unflatten(1, (positional, d)).movedim(2, -1)
    if made.content_heads:
        parts = made._project(features)
        for whole, part in zip((query, key, value), parts, strict=True):
            whole[:, positional:] = part
    call, window = made._encode(query, key, value)
    value = F.pad(call.value, (0, call.query.shape[-1] - d))
    heads = gsa.ops.attend(
        call.query, call.key, value, call.spatial, call.pose, window, form=made._op_form, backend="reference"
    )
    return crop_border(made.out(heads[..., :d].movedim(-1, 2).flatten(1, 2)), made.crop + made.padding)


@pytest.mark.parametrize("neighbourhood, crop", [*product((1, 3, 5), (0, 1, 3)), (None, 0), (None, 1)])
@pytest.mark.parametrize("heads, positional", [(5, 5), (6, 4), (2, 0)])
@pytest.mark.parametrize("form, group, window", [
    ("lifting", "R4", "square"),
    ("lifting", "R8M", "disk"),
    ("regular", "Z2", "square"),
    ("regular", "Z2M", "disk"),
    ("regular", "R4M", "square"),
    ("regular", "R8", "disk"),
])  # fmt: skip
def test_every_pixel_and_every_gradient_is_that_of_the_op(form, group, window, heads, positional, neighbourhood, crop):
    made = layer(form, heads, positional, group, neighbourhood=neighbourhood, window=window, crop=crop)
    x = picture(form, group, *((9, 8) if neighbourhood else (5, 4))).requires_grad_()
    ours, law = made(x), by_the_op(made, x)
    torch.testing.assert_close(ours, law, rtol=0, atol=1e-12)
    grad = torch.randn_like(ours)
    tensors = [x, *made.parameters()]
    found, expected = (torch.autograd.grad(y, tensors, grad, allow_unused=True) for y in (ours, law))
    for one, other, tensor in zip(found, expected, tensors, strict=True):
        zero = torch.zeros_like(tensor)
        torch.testing.assert_close(zero if one is None else one, zero if other is None else other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("neighbourhood, crop, padding", [(5, 0, 2), (5, 1, 1), (3, 2, 0), (9, 0, 4)])
@pytest.mark.parametrize("heads, positional", [(5, 5), (6, 4), (2, 0)])
@pytest.mark.parametrize("form, group", [("lifting", "R4"), ("lifting", "R8M"), ("regular", "R4M"), ("regular", "R8")])
def test_a_border_of_zeros_is_that_of_a_padded_picture(
    computed, form, group, heads, positional, neighbourhood, crop, padding
):
    made = layer(form, heads, positional, group, neighbourhood=neighbourhood, crop=crop, border="zeros")
    hidden = layer(form, heads, positional, group, neighbourhood=neighbourhood, crop=crop + padding)
    hidden.load_state_dict(made.state_dict())
    x = picture(form, group, 6, 5)
    assert made.padding == padding and not made._is_wide
    torch.testing.assert_close(made(x), hidden(F.pad(x, (padding,) * 4)), rtol=0, atol=1e-13)
    torch.testing.assert_close(made(x), by_the_op(made, x), rtol=0, atol=1e-12)
    assert made.attention(x).shape[3:] == made(x).shape[3:] + (neighbourhood,) * 2
    assert_equivariant(made, picture(form, group, 6, 6), gsa.group(group))


@pytest.mark.parametrize("neighbourhood", [9, None])
def test_wide_windows_are_left_to_the_op_and_positional_heads_keep_all_their_weights(neighbourhood):
    made = layer("regular", 5, 3, neighbourhood=neighbourhood, attention_dropout=0.9)
    x = picture("regular", height=11, width=10)
    assert made._is_wide
    torch.nn.init.zeros_(made.out.weight[:, 24:].detach())
    torch.testing.assert_close(made(x), by_the_op(made, x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 0.02), (torch.float16, 0.003)])
def test_scores_of_position_are_precise_in_half_precision(computed, dtype, tolerance):
    made = layer("regular", 4, 4, "R8", neighbourhood=7)
    torch.nn.init.constant_(made.encoding.raw_sharpness, 4.0)
    x = picture("regular", "R8")
    exact = made(x)
    made.float()
    with torch.autocast("cpu", dtype):
        halved = made(x.float())
    assert ((halved - exact).norm() / exact.norm()).item() < tolerance


def test_maps_smaller_than_the_window_are_all_border(computed):
    made = layer("regular", 3, 3, neighbourhood=7)
    for height, width in ((3, 9), (9, 3), (1, 1), (6, 7)):
        x = picture("regular", height=height, width=width)
        torch.testing.assert_close(made(x), by_the_op(made, x), rtol=0, atol=1e-12)


def test_a_padded_convolution_is_wrong_at_the_border():
    """Planted: zeros outside the picture as keys."""
    made, x = layer("regular", 3, 3, neighbourhood=3), picture("regular")
    right = made(x)
    wrong = crop_border(made(F.pad(x, (1, 1, 1, 1))), 1)
    torch.testing.assert_close(wrong[..., 1:-1, 1:-1], right[..., 1:-1, 1:-1])
    assert (wrong - right).abs().max() > 1e-2


@pytest.mark.parametrize("group", ["Z2", "Z2M", "R4", "R4M", "R8", "R8M"])
@pytest.mark.parametrize("heads, positional", [(9, 9), (6, 4)])
def test_poses_and_translations(group, heads, positional):
    for form in ("lifting", "regular"):
        made = layer(form, heads, positional, group, neighbourhood=3)
        if group != "Z2":
            assert_equivariant(made, picture(form, group, 8, 8), gsa.group(group))
        assert translation_error(made, picture(form, group, 10, 12), shift=(1, -2), margin=3) < 1e-12


def test_offsets_that_poses_do_not_act_upon_are_noticed():
    made = layer("regular", 4, 4)
    made.encoding.places = made.encoding.places[:1].expand(4, -1, -1, -1)
    assert max(equivariance_error(made, picture("regular", height=8), gsa.group("R4")).values()) > 1e-2


def test_heads_start_at_the_cells_and_poses_one_after_the_other():
    made = GroupSelfAttention(
        "R4", 2, 3, 18, 8, neighbourhood=3, encoding="quadratic", form="regular", positional_heads=18
    )
    encoding = made.encoding
    starts = {
        (*offset, *pose) for offset, pose in zip(encoding.offset.tolist(), encoding.preference.tolist(), strict=True)
    }
    assert len(starts) == 18 and len({start[:2] for start in starts}) == 9
    weights = made.attention(picture("regular"))[0, :, 0, 4, 4]  # of the identity's pose, in the interior
    for head, (x, y) in enumerate(encoding.offset.round().int().tolist()):
        assert weights[head].argmax() == (1 - y) * 3 + (1 + x)  # rows run down, y up
    torch.testing.assert_close(encoding.sharpness, torch.full((18,), 2.0))


def test_heads_may_start_at_the_centre_for_comparison():
    made = layer("regular", 4, 4, head_starts="centre")
    made.encoding.reset_parameters()
    assert not made.encoding.offset.any() and not made.encoding.preference.any()
    with pytest.raises(ValueError, match="head_starts='centre' need an encoding with a place"):
        LiftingSelfAttention("R4", 1, 2, head_starts="centre")
    with pytest.raises(ValueError, match="head_starts must be one of"):
        AttentionOptions(head_starts="corner")


def test_maps_of_positional_heads_are_the_same_for_every_picture():
    made = layer("regular", 4, 3, neighbourhood=3, crop=1)
    one, other = (made.attention(picture("regular")) for _ in range(2))
    assert one.shape == (2, 4, 4, 7, 6, 3, 3)
    torch.testing.assert_close(one[:, :3], other[:, :3])
    assert (one[:, 3] - other[:, 3]).abs().max() > 1e-3


def test_heads_with_content_start_silent_beside_positional_ones():
    made = GroupSelfAttention("R4", 2, 3, 6, 8, encoding="quadratic", form="regular", positional_heads=4)
    x = picture("regular")
    before = made(x)
    with torch.no_grad():
        made.query_key_value.weight.normal_()
    torch.testing.assert_close(made(x), before, rtol=0, atol=0)
    made(x).square().sum().backward()
    assert made.out.weight.grad[:, 32:].abs().min() > 0  # and learn to speak


def test_a_sharp_head_is_one_entry_of_a_convolution():
    """α, |c| → ∞: each head looks at one cell and one pose, so the layer is a group convolution."""
    group = gsa.group("R4")
    made = GroupSelfAttention(
        group, 2, 3, 36, 2, neighbourhood=3, encoding="quadratic", form="regular", positional_heads=36, crop=1
    )
    with torch.no_grad():
        made.encoding.raw_sharpness.fill_(200.0)
        made.encoding.preference.mul_(200.0)
        made.out.bias.normal_()
    convolution = gsa.nn.GroupConvolution(group, 2, 3, 3)
    maps = torch.einsum(
        "oed,edc->eoc", made.out.weight.unflatten(1, (36, 2)), made.positional_value.weight.unflatten(0, (36, 2))
    )
    with torch.no_grad():
        convolution.weight.zero_()
        convolution.bias.copy_(made.out.bias)
        for head in range(36):
            x, y = made.encoding.offset[head].int().tolist()
            pose = (made.encoding.preference[head] @ made.encoding.pose_vectors.T).argmax()
            convolution.weight[:, :, pose, 1 - y, 1 + x] += maps[head]
    x = picture("regular")
    torch.testing.assert_close(made(x), convolution(x))


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"positional heads .* need an encoding with a place .* but got 'functional'"):
        LiftingSelfAttention("R4", 1, 2, 4, 8, positional_heads=2)
    with pytest.raises(ValueError, match="positional heads need form='regular'"):
        GroupSelfAttention("R4", 1, 2, 4, 8, encoding="quadratic", form="summed", positional_heads=2)
    with pytest.raises(ValueError, match=r"need a head_dim of at least 6, but got 5"):
        GroupSelfAttention("R4", 1, 2, 4, 5, encoding="quadratic", form="regular", positional_heads=2)
    with pytest.raises(ValueError, match=r"from 0 to num_heads \(4\), but got 5"):
        AttentionOptions(num_heads=4, positional_heads=5)
    with pytest.raises(ValueError, match="must be made for this layer's 4 heads, but was made for 3"):
        made = gsa.encodings.QuadraticEncoding(gsa.group("R4"), 8, 3, gsa.encodings.Neighbourhood(3))
        GroupSelfAttention("R4", 1, 2, 4, 8, 3, made, form="regular")


def test_layers_are_made_on_any_device():
    with torch.device("meta"):
        made = LiftingSelfAttention("R6", 1, 2, 3, 8, encoding="quadratic", positional_heads=3)
    assert made.out.weight.is_meta and not gsa.group("R6").matrices.is_meta
    with pytest.raises(ValueError, match="at least one head and a sharpness in"):
        gsa.encodings.QuadraticEncoding(gsa.group("R4"), 8, 3, gsa.encodings.Neighbourhood(3), start_sharpness=-1)
    with pytest.raises(ValueError, match="crop must be a number of pixels"):
        LiftingSelfAttention("R4", 1, 2, crop=-1)


def test_precision_survives_casts():
    encoding = layer("regular", 2, 2, "R8").encoding
    exact = encoding.pose_vectors.clone()
    assert torch.equal(encoding.float().double().pose_vectors, exact)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_networks_of_half_precision_attend_by_position(computed, dtype):
    layer = GroupSelfAttention("R4", 2, 3, 4, 8, 3, encoding="quadratic", positional_heads=4)
    x = torch.randn(2, 2, 4, 6, 6)
    with torch.no_grad():
        whole, half = layer(x), layer.to(dtype)(x.to(dtype))
    assert half.dtype == dtype and (half.float() - whole).norm() < 0.02 * whole.norm()


def test_a_crop_that_leaves_nothing_is_refused_in_pixels_of_the_map():
    made = GroupSelfAttention("R4", 3, 4, neighbourhood=5, crop=1, border="zeros")
    with pytest.raises(ValueError, match="cropping 1 pixels from every border leaves nothing of a 2×4 map"):
        made(torch.randn(1, 3, 4, 2, 4))
