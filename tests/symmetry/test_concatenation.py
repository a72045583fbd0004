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
        assert statements.concatenation_error(made, x) > 1e-3


def test_global_attention_and_heads_by_position():
    for options in ({"neighbourhood": None}, {"positional_heads": 1}, {"neighbourhood": 9, "positional_heads": 2}):
        assert statements.concatenation_error(layer("regular", "quadratic", "R8", **options), picture("", "R8")) < 1e-13


@pytest.mark.parametrize("encoding, acted", [("fourier", True), ("fourier", False), ("constant", True)])
def test_poses_differ_only_by_the_encoding_that_is_acted_upon(encoding, acted):
    made = layer("lifting", encoding, "R4")
    if not acted:
        made.encoding.inverse_matrices = torch.eye(2).expand(4, 2, 2).clone()
    y = made(picture("lifting", "R4"))
    apart = relative_error(y.mean(2, keepdim=True).expand_as(y), y)
    assert apart > 1e-2 if encoding == "fourier" and acted else apart < 1e-14
