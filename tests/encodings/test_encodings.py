"""What each encoding keeps, and what it breaks."""

import pytest
import torch

import gsa
from gsa.encodings import (
    FORMS,
    KINDS,
    Encoded,
    Neighbourhood,
    RotaryEncoding,
    TableEncoding,
    encoding,
)
from gsa.models._published import PublishedGroupTerm
from gsa.nn import GroupSelfAttention, LiftingSelfAttention
from gsa.symmetry import assert_equivariant, permutation_error, translation_error

pytestmark = pytest.mark.usefixtures("float64")


def layer(kind, form, group="R4", neighbourhood=3, **options):
    head_dim = 8 if kind == "quadratic" else 6
    if form == "lifting":
        return LiftingSelfAttention(group, 2, 3, 2, head_dim, neighbourhood, kind, **options)
    return GroupSelfAttention(group, 2, 3, 2, head_dim, neighbourhood, kind, form=form, **options)


def picture(form, group="R4", height=8, width=8):
    poses = () if form == "lifting" else (gsa.group(group).order,)
    return torch.randn(1, 2, *poses, height, width)


def possible(kind, form, group="R4"):
    return form in KINDS[kind].forms and not (kind == "table" and not gsa.group(group).is_on_grid)


COMBINATIONS = [(kind, form) for kind in KINDS for form in FORMS if possible(kind, form)]


@pytest.mark.parametrize("window", ["square", "disk"])
@pytest.mark.parametrize(
    "kind, form, group",
    [(k, f, g) for k, f in COMBINATIONS for g in ("Z2M", "R4", "R8", "R4M", "R8M") if possible(k, f, g)],
)
def test_poses(kind, form, group, window):
    module, x = layer(kind, form, group, neighbourhood=5, window=window), picture(form, group, 6, 6)
    if "poses" in module.encoding.keeps:
        assert_equivariant(module, x, gsa.group(group))
    else:
        with pytest.raises(AssertionError, match="not equivariant"):
            assert_equivariant(module, x, gsa.group(group), tolerance=1e-3)


@pytest.mark.parametrize("kind, form", COMBINATIONS)
def test_translations(kind, form):
    module, x = layer(kind, form), picture(form, height=10, width=12)
    error = translation_error(module, x, shift=(1, -2), margin=3)
    if "translations" in module.encoding.keeps:
        assert error < 1e-12
    else:
        assert error > 1e-3


@pytest.mark.parametrize("kind, form", [(k, f) for k, f in COMBINATIONS if k != "table"])
def test_permutations_of_all_pixels_in_global_attention(kind, form):
    module, x = layer(kind, form, neighbourhood=None), picture(form, height=4, width=5)
    error = permutation_error(module, x, torch.randperm(20))
    if "permutations" in module.encoding.keeps:
        assert error < 1e-12
    else:
        assert error > 1e-3


def test_a_window_keeps_no_permutation_but_a_constant_encoding_keeps_the_mirror_in_every_group():
    module, x = layer("constant", "lifting", "Z2"), picture("lifting")
    assert permutation_error(module, x, torch.randperm(64)) > 1e-3
    assert_equivariant(lambda x: module(x)[:, :, 0], x, gsa.group("R4M"))


@pytest.mark.parametrize("kind, form", [(k, f) for k, f in COMBINATIONS if k not in ("table", "absolute")])
@pytest.mark.parametrize("height, width", [(4, 6), (3, 7)])
def test_global_attention_on_maps_that_are_not_square(kind, form, height, width):
    assert_equivariant(
        layer(kind, form, "R4M", neighbourhood=None), picture(form, "R4M", height, width), gsa.group("R4M")
    )


@pytest.mark.parametrize("kind, form", [(k, f) for k, f in COMBINATIONS if k not in ("constant", "absolute")])
def test_position_matters(kind, form):
    """An encoding that said nothing would pass every test of symmetry; without poses it must break the mirror."""
    module, x = layer(kind, form, "Z2"), picture(form, "Z2")
    transposed = torch.arange(64).view(8, 8).T.flatten()
    assert permutation_error(module, x, transposed) > 1e-3


# Planted failures: each breaks exactly what its design says.


class UnactedTable(TableEncoding):
    """A table that poses do not act upon."""

    def acted(self, offsets):
        return offsets.expand(self.group.order, *offsets.shape)


def test_an_unacted_table_fails_under_rotation_only():
    group = gsa.group("R4")
    module = layer(UnactedTable(group, 6, Neighbourhood(3)), "regular")
    with pytest.raises(AssertionError, match="not equivariant under 90°, 180°, 270°"):
        assert_equivariant(module, picture("regular"), group)
    assert translation_error(module, picture("regular"), (2, 1), margin=3) < 1e-12


class KeysTurnedByTheirOwnPose(RotaryEncoding):
    """Query and key each turned by the phases of its own pose."""

    def forward(self, query, key, value, neighbourhood):
        from gsa.encodings._rotary import _turn

        height, width = query.shape[-3:-1]
        positions = neighbourhood.positions(height, width, like=self.inverse_matrices)
        phase = self.acted(positions) @ self.frequencies.T
        spatial = query.new_zeros(self.group.order, *neighbourhood.extent(height, width), self.head_dim)
        pose = self.pose_vectors[self.relative_pose]
        return Encoded(_turn(query, phase), _turn(key, phase), value, spatial, pose)


def test_rotary_keys_turned_by_their_own_pose_pass_the_point_group_and_fail_translation():
    group = gsa.group("R4")
    module = layer(KeysTurnedByTheirOwnPose(group, 6), "regular")
    assert_equivariant(module, picture("regular"), group)
    assert translation_error(module, picture("regular"), (2, 1), margin=3) > 1e-3
    ours = layer("rotary", "regular")
    assert translation_error(ours, picture("regular"), (2, 1), margin=3) < 1e-12


@pytest.mark.parametrize("name", ["R4", "Z2M", "R4M"])
def test_the_published_pose_index_is_not_equivariant(name):
    group = gsa.group(name)
    assert_equivariant(GroupSelfAttention(group, 2, 3, 2, 6, 3, form="summed"), picture("summed", name), group)
    layer = PublishedGroupTerm(group, 2, 3, 2, 6, 3, form="summed")
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_equivariant(layer, picture("summed", name), group, tolerance=1e-4)


# The parts.


def test_offsets_are_normalised_isotropically():
    like = torch.empty(0)
    offsets = Neighbourhood(5).offsets(4, 9, like)
    assert offsets.shape == (5, 5, 2)
    assert offsets[0, 4].tolist() == [1.0, 1.0] and offsets[4, 0].tolist() == [-1.0, -1.0]  # y points up
    everywhere = Neighbourhood(None).offsets(4, 9, like)
    assert everywhere.shape == (7, 17, 2)
    assert everywhere[..., 0].max() == 1 and everywhere[..., 1].max() == 3 / 8
    assert Neighbourhood(1).offsets(4, 4, like).tolist() == [[[0.0, 0.0]]]
    assert Neighbourhood(None).offsets(1, 1, like).tolist() == [[[0.0, 0.0]]]


def test_the_disk():
    expected = ["..1..", ".111.", "11111", ".111.", "..1.."]
    mask = Neighbourhood(5, "disk").mask(8, 8, torch.device("cpu"))
    assert ["".join(".1"[int(cell)] for cell in row) for row in mask] == expected


def test_casting_back_and_forth_loses_nothing():
    module = encoding("functional", gsa.group("R8"), 6, Neighbourhood(3))
    exact = module.inverse_matrices.clone()
    assert module.float().inverse_matrices.dtype == torch.float32
    assert torch.equal(module.double().inverse_matrices, exact)


def test_memory_that_was_never_filled_is_rebuilt():
    module = encoding("functional", gsa.group("R8"), 6, Neighbourhood(3))
    exact = module.inverse_matrices.clone()
    module.to_empty(device="cpu")
    assert torch.equal(module.inverse_matrices, exact)
    assert torch.equal(module.relative_pose, gsa.group("R8").product[gsa.group("R8").inverse])


@pytest.mark.parametrize("form", ["regular", "summed"])
@pytest.mark.parametrize("kind", ["functional", "table", "fourier", "rotary"])
def test_an_encoding_without_poses_is_refused_by_a_group_layer(kind, form):
    group = gsa.group("R4")
    lifted = encoding(kind, group, 6, Neighbourhood(3), form="lifting")
    if form in lifted.forms:
        with pytest.raises(ValueError, match="has key poses: .* made with lifting=False, but has lifting=True"):
            GroupSelfAttention(group, 2, 2, 2, 6, 3, lifted, form=form)
    assert LiftingSelfAttention(group, 2, 2, 2, 6, 3, lifted).encoding is lifted


@pytest.mark.parametrize("kind", ["constant", "absolute"])
def test_encodings_that_know_no_poses_serve_every_layer(kind):
    group = gsa.group("R4")
    module = encoding(kind, group, 6, Neighbourhood(3))
    assert LiftingSelfAttention(group, 2, 2, 2, 6, 3, module).encoding is module
    assert GroupSelfAttention(group, 2, 2, 2, 6, 3, module).encoding is module


def test_replicas_of_data_parallel_have_no_parameters():
    """What torch.nn.parallel.replicate leaves of a module: its weights as plain attributes."""
    layer = LiftingSelfAttention("R4", 2, 2, 2, 6, 3)
    x = torch.rand(1, 2, 5, 5)
    expected = layer(x)
    for module in layer.modules():
        module._is_replica = True
        for name in list(module._parameters):
            weight = module._parameters.pop(name)
            setattr(module, name, weight if weight is None else weight.data)
    assert not list(layer.parameters())
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("encoding, neighbourhood", [("rotary", 5), ("rotary", None), ("fourier", None)])
def test_half_precision_knows_pixels_far_from_the_centre(encoding, neighbourhood):
    side = 64 if neighbourhood else 20
    layer = LiftingSelfAttention("R8", 3, 8, 2, 8, neighbourhood, encoding=encoding)
    x = torch.randn(1, 3, side, side)
    with torch.no_grad():
        whole = layer(x)
        with torch.autocast("cpu", torch.bfloat16):
            half = layer(x)
    assert (half.float() - whole).norm() < 0.02 * whole.norm()  # 0.1 with phases in bfloat16
