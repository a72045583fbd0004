"""Norms commute with the group, and those that would not are caught."""

import pytest
import torch

import gsa
from gsa.nn import norm
from gsa.symmetry import assert_equivariant


@pytest.mark.parametrize("kind", ["channel", "sample", "batch"])
@pytest.mark.parametrize("group", ["R4", "R4M"])
def test_norms_commute_with_the_group(kind, group, float64):
    module = norm(kind, 3)
    module.weight.data.normal_()
    for _ in range(3):  # running statistics, where there are any
        module(torch.randn(4, 3, gsa.group(group).order, 5, 5))
    assert_equivariant(module, torch.randn(2, 3, gsa.group(group).order, 5, 5), gsa.group(group))


def test_gains_that_differ_between_poses_are_caught(float64):
    """Planted failure: a norm over channels and poses with a gain for each."""
    group = gsa.group("R4")
    plain = torch.nn.LayerNorm([4, 5, 5])
    plain.weight.data.normal_()
    with pytest.raises(AssertionError, match="LayerNorm is not equivariant"):
        assert_equivariant(plain, torch.randn(1, 2, 4, 5, 5), group)


def test_unknown_norms_are_refused():
    with pytest.raises(ValueError, match="norm must be one of"):
        norm("layer", 3)
