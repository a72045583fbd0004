"""Group self-attention is self-attention with each acted encoding, side by side."""

import itertools

import pytest
import torch

import gsa
from gsa.nn import GroupSelfAttention, LiftingSelfAttention
from gsa.symmetry import relative_error, statements

pytestmark = pytest.mark.usefixtures("float64")


def layer(form, encoding, group, **options):
    sizes = (group, 2, 3, 2, 12, options.pop("neighbourhood", 3), encoding)
    return LiftingSelfAttention(*sizes, **options) if form == "lifting" else GroupSelfAttention(*sizes, form, **options)


def picture(form, group):
    return torch.randn(2, 2, *(() if form == "lifting" else (gsa.group(group).order,)), 5, 6)


@pytest.mark.parametrize("group", ["R4", "R8", "R4M"])
@pytest.mark.parametrize("form, encoding", [
    *itertools.product(("lifting", "regular", "summed"), ("functional", "fourier", "quadratic", "constant")),
    ("lifting", "rotary"),
    ("regular", "rotary"),
])  # fmt: skip
def test_the_three_steps(form, encoding, group):
    made, x = layer(form, encoding, group), picture(form, group)
    assert statements.concatenation_error(made, x) < 1e-13
    if encoding != "constant":  # planted: what no pose acts upon
        poses = made.encoding.inverse_matrices.shape[0]
        made.encoding.inverse_matrices = torch.eye(2).expand(poses, 2, 2).clone()
        if encoding == "quadratic":
            made.encoding.places = made.encoding.places[:1].expand(poses, -1, -1, -1)
        assert statements.concatenation_error(made, x) > 1e-3


def test_global_attention_and_heads_by_position():
    for options in ({"neighbourhood": None}, {"positional_heads": 1}, {"neighbourhood": 9, "positional_heads": 2}):
        assert statements.concatenation_error(layer("regular", "quadratic", "R8", **options), picture("", "R8")) < 1e-13


def test_an_encoding_that_no_element_acts_upon_is_refused():
    with pytest.raises(ValueError, match="expected an encoding that is not absolute, but got absolute"):
        statements.concatenation_error(layer("regular", "absolute", "R4"), picture("", "R4"))


@pytest.mark.parametrize("encoding, acted", [("fourier", True), ("fourier", False), ("constant", True)])
def test_poses_differ_only_by_the_encoding_that_is_acted_upon(encoding, acted):
    made = layer("lifting", encoding, "R4")
    if not acted:
        made.encoding.inverse_matrices = torch.eye(2).expand(4, 2, 2).clone()
    y = made(picture("lifting", "R4"))
    apart = relative_error(y.mean(2, keepdim=True).expand_as(y), y)
    assert apart > 1e-2 if encoding == "fourier" and acted else apart < 1e-14


def test_an_encoding_inside_the_keys_map_is_one_outside():
    """W_q x_i · W_k (x_j + ρ) = q·(k + ρ′) with ρ′ = W_k ρ: a learned ρ′ is as general."""
    height, width, d = 3, 4, 5
    pixels, (of_query, of_key) = torch.randn(height, width, d), torch.randn(2, d, d)
    place = torch.randn(3, 3, d)
    query, key = pixels @ of_query.T, pixels @ of_key.T
    expected = torch.empty(height, width, d)
    for y, x in itertools.product(range(height), range(width)):
        near = [(v, u) for v in range(y - 1, y + 2) for u in range(x - 1, x + 2) if 0 <= v < height and 0 <= u < width]
        inside = torch.stack([of_key @ (pixels[v, u] + place[v - y + 1, u - x + 1]) for v, u in near])
        weights = torch.softmax(inside @ query[y, x] / d**0.5, 0)
        expected[y, x] = weights @ torch.stack([pixels[v, u] for v, u in near])

    def attended(spatial):
        maps = (t[None, None, None] for t in (query, key, pixels))
        return gsa.ops.attend(*maps, spatial[None], torch.zeros(1, 1, d), torch.ones(3, 3, dtype=torch.bool))[0, 0, 0]

    torch.testing.assert_close(attended(place @ of_key.T), expected)
    assert not torch.allclose(attended(place), expected)  # planted: not mapped
