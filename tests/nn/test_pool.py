"""Pools are exact on the sides they accept, and refuse the others."""

import pytest
import torch

import gsa
from gsa.nn import SpatialPool
from gsa.symmetry import assert_equivariant


@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize("kernel, stride, side", [(2, 2, 6), (3, 2, 7), (3, 3, 6), (1, 2, 5), (3, 1, 4)])
def test_pools_are_exact_on_the_sides_they_accept(kind, kernel, stride, side, float64):
    group = gsa.group("R4M")
    pool = SpatialPool(kernel, stride, kind)
    assert_equivariant(pool, torch.randn(1, 2, 8, side, side), group)
    assert pool(torch.randn(1, 2, 8, side, side)).shape[-1] == pool.output_size(side)


@pytest.mark.parametrize(
    "kernel, stride, side, good", [(2, 2, 7, "6 or 8"), (3, 2, 6, "5 or 7"), (2, 2, 1, "2"), (3, 3, 10, "9 or 12")]
)
def test_pools_refuse_sides_that_lose_exactness(kernel, stride, side, good, float64):
    x = torch.randn(1, 2, 4, side, 12)
    with pytest.raises(ValueError, match=f"got a {side}×12 map; nearest sides that stay exact: {good}$"):
        SpatialPool(kernel, stride)(x)
    if side > kernel:  # and they are right to
        with pytest.raises(AssertionError):
            square = torch.randn(1, 2, 4, side, side)
            assert_equivariant(SpatialPool(kernel, stride, on_inexact="allow"), square, gsa.group("R4"))


def test_pools_warn_once_for_each_size():
    pool = SpatialPool(on_inexact="warn")
    with pytest.warns(UserWarning, match="nearest sides that stay exact: 6 or 8"):
        pool(torch.rand(1, 1, 7, 7))
    pool(torch.rand(1, 1, 7, 7))  # warnings are errors here
    with pytest.warns(UserWarning, match="9×8"):
        pool(torch.rand(1, 1, 9, 8))


@pytest.mark.parametrize("options", [{"kind": "min"}, {"on_inexact": "ignore"}, {"kernel": 0}, {"stride": 0}])
def test_pools_refuse_bad_arguments(options):
    with pytest.raises(ValueError, match="must be"):
        SpatialPool(**options)


def test_the_side_that_is_wrong_is_the_one_told_of():
    with pytest.raises(ValueError, match="got a 8×7 map; nearest sides that stay exact: 6 or 8"):
        SpatialPool(2)(torch.rand(1, 1, 8, 7))


def test_a_side_smaller_than_the_window_is_refused():
    pool = SpatialPool(3, stride=2)
    assert not pool.is_exact_on(1) and pool.is_exact_on(3)
    with pytest.raises(ValueError, match="got a 1×1 map; nearest sides that stay exact: 3"):
        pool(torch.rand(1, 1, 1, 1))
