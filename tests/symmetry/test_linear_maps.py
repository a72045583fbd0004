"""Maps that are linear in their values are equivariant exactly when their coefficients are invariant."""

import math

import pytest
import torch

import gsa
from gsa.nn import GroupConvolution, GroupSelfAttention
from gsa.symmetry import statements

pytestmark = pytest.mark.usefixtures("float64")
SIDE = 5


def errors(linear_map, symmetry, group):
    content, values = torch.randn(2, 2, 2, gsa.group(group).order, SIDE, SIDE)
    return statements.linear_map_errors(linear_map, content, values, statements.moves(symmetry, group, SIDE))


@pytest.mark.parametrize("name", ["self-attention, relative encoding", "self-attention, constant encoding"])
def test_self_attention(name):
    found = errors(*statements.four_examples()[name])
    assert max(found.values()) < 1e-14


@pytest.mark.parametrize("group", ["R4", "Z2M", "R4M"])
def test_convolution_and_group_convolution(group):
    examples = statements.four_examples(group=group)
    for name in ("convolution", "group convolution"):
        assert max(errors(*examples[name]).values()) < 1e-14, name


def attention(group, encoding, neighbourhood=3):
    options = (2, 6, neighbourhood, encoding, "regular")
    return GroupSelfAttention(group, 4, 2, *options, crop=(neighbourhood or 1) // 2)


@pytest.mark.parametrize("group", ["R4", "R4M"])
def test_group_self_attention_is_a_fifth(group):
    found = errors(statements.attention_map(attention(group, "fourier")), "group", group)
    assert max(found.values()) < 1e-14


@pytest.mark.parametrize("symmetry, group, encoding, neighbourhood", [
    ("translations", "Z2", "absolute", 3),  # written into the features
    ("permutations", "Z2", "fourier", None),  # relative: knows which pixels are neighbours
    ("group", "R4", "absolute", 3),
])  # fmt: skip
def test_planted_an_encoding_that_is_not_invariant(symmetry, group, encoding, neighbourhood):
    found = errors(statements.attention_map(attention(group, encoding, neighbourhood)), symmetry, group)
    assert found["linear"] < 1e-14 and found["invariant"] > 1e-2 and found["equivariant"] > 1e-2


def test_of_several_generators_the_worst_counts():
    """Planted: a scale for every row, which shifts along rows leave."""
    scales, (content, values) = torch.rand(SIDE, 1), torch.randn(2, 2, 2, 1, SIDE, SIDE)
    along, across = statements.moves("translations", "Z2", SIDE)
    every, one, other = (
        statements.linear_map_errors(lambda _, v: scales * v, content, values, moves)
        for moves in ([along, across], [along], [across])
    )
    for name in ("invariant", "equivariant"):
        assert every[name] == other[name] > 0.1 and one[name] == 0


@pytest.mark.parametrize("encoding, form, crop, message", [
    ("fourier", "regular", 0, "its crop the reach"),
    ("fourier", "summed", 1, 'must be of form="regular"'),
    ("quadratic", "regular", 1, "must be of equal size"),
])  # fmt: skip
def test_layers_that_are_no_map_on_a_torus_are_refused(encoding, form, crop, message):
    with pytest.raises(ValueError, match=message):
        statements.attention_map(GroupSelfAttention("R4", 4, 2, 2, 12, 3, encoding, form, crop=crop))


def test_what_is_not_a_number_is_not_hidden():
    found = errors(lambda content, values: values * torch.nan, "translations", "R4")
    assert all(math.isnan(error) for error in found.values())


@pytest.mark.parametrize("group, side", [("Z2", 3), ("R4", 3), ("Z2M", 5), ("R4M", 3)])
def test_the_group_convolution_is_the_only_equivariant_map(group, side):
    found = statements.only_convolutions(group, side)
    assert found["elements"] == found["maps"] == found["convolutions"] == gsa.group(group).order * side**2
    assert found["residual"] < 1e-13
    assert found["any map"] > 0.9  # planted: a map that was not averaged


@pytest.mark.parametrize("group, side", [("R8", 3), ("R4", 4)])
def test_a_torus_that_a_group_does_not_map_to_itself_is_refused(group, side):
    with pytest.raises(ValueError, match=f"of an odd side to pixels, but got {group} and {side}"):
        statements.only_convolutions(group, side)


def test_planted_a_filter_that_does_not_turn():
    convolution = GroupConvolution("R4", 2, 2, 3, bias=False)
    convolution.moved = convolution.moved[:1].expand(4, *convolution.moved.shape[1:]).clone()
    found = errors(statements.convolution_map(convolution), "group", "R4")
    assert found["linear"] < 1e-14 and found["invariant"] > 0.1 and found["equivariant"] > 0.1


def test_attention_is_linear_in_its_values_and_not_in_its_features():
    """So what it describes is more than convolutions do."""
    layer = GroupSelfAttention("R4", 2, 2, 2, 6, 3, "fourier", "regular", crop=1)
    whole = errors(lambda content, values: layer(torch.nn.functional.pad(values, (1, 1, 1, 1))), "translations", "R4")
    assert whole["linear"] > 0.1
    with pytest.raises(ValueError, match="symmetry must be"):
        statements.moves("scalings", "R4", SIDE)
    with pytest.raises(ValueError, match="must map pixels to pixels, but R8 does not"):
        statements.moves("group", "R8", SIDE)
