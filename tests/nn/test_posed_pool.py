"""Pools in the place of ordinary ones, whose strides are counted from both ends."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import gsa
from gsa.nn import PosedPool, replace_convolutions
from gsa.symmetry import assert_equivariant, equivariance_error, gradient_errors

pytestmark = pytest.mark.usefixtures("float64")

POOLS = [
    nn.MaxPool2d(3, 2, 1),
    nn.MaxPool2d(2),
    nn.MaxPool2d(3, 2, ceil_mode=True),
    nn.MaxPool2d(2, 3),
    nn.MaxPool2d(3, 2, 1, ceil_mode=True),
    nn.AvgPool2d(3, 2, 1),
    nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    nn.AvgPool2d(2, ceil_mode=True),
    nn.AvgPool2d(3, 2, 1, ceil_mode=True),
    nn.AvgPool2d(5, 3, 2, ceil_mode=True, count_include_pad=False),
]


@pytest.mark.parametrize("height, width", [(8, 8), (9, 9), (7, 7), (10, 11), (3, 3), (3, 4)])
@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_they_turn_on_any_sides_and_are_the_pool_where_it_does(pool, height, width):
    x = torch.randn(2, 3, height, width) + 1
    posed = PosedPool(pool)
    assert posed(x).shape == pool(x).shape
    assert_equivariant(posed, x, gsa.group("R4M"))
    if max(equivariance_error(pool, x, "R4M").values()) < 1e-12:
        torch.testing.assert_close(posed(x), pool(x))
    if min(height, width) > 3:
        torch.testing.assert_close(posed(torch.ones_like(x)).amax(), torch.tensor(1.0))


@pytest.mark.parametrize("height, width", [(8, 8), (9, 7), (10, 11)])
@pytest.mark.parametrize("pool", [pool for pool in POOLS if isinstance(pool, nn.MaxPool2d)], ids=str)
def test_the_largest_is_that_of_the_pool_in_all_poses(pool, height, width):
    """Planted: the pool as it is."""
    x = torch.randn(2, 3, height, width)
    poses = [pool(x.flip(axes)).flip(axes) for axes in ([], [2], [3], [2, 3])]
    assert torch.equal(PosedPool(pool)(x), torch.stack(poses).amax(0))
    assert (height, width) != (8, 8) or pool.kernel_size != 3 or not torch.equal(pool(x), torch.stack(poses).amax(0))


def test_a_mean_is_over_pixels_of_the_picture():
    x = torch.randn(1, 1, 8, 8)
    mean = PosedPool(nn.AvgPool2d(3, 2, 1))(x)
    torch.testing.assert_close(mean[0, 0, 1, 2], x[0, 0, 1:5, 3:7].mean())
    torch.testing.assert_close(mean, F.avg_pool2d(x, 4, 2, 1))
    without = PosedPool(nn.AvgPool2d(3, 2, 1, count_include_pad=False))(x)
    torch.testing.assert_close(without[0, 0, 0, 0], x[0, 0, :3, :3].mean())


@pytest.mark.parametrize("pool", [
    nn.MaxPool2d((2, 3)),
    nn.MaxPool2d(2, return_indices=True),
    nn.MaxPool2d(3, 2, dilation=2),
    nn.AvgPool2d(2, divisor_override=3),
    nn.LPPool2d(2, 3, 2),
    type("Mine", (nn.MaxPool2d,), {})(3, 2, 1),
])  # fmt: skip
def test_pools_of_another_kind_are_refused_by_name(pool):
    rule = r"expected nn\.MaxPool2d or nn\.AvgPool2d, alike in both directions, .* but"
    assert not PosedPool.takes(pool)
    with pytest.raises(ValueError, match=rule):
        PosedPool(pool)
    with pytest.raises(ValueError, match=f"cannot be replaced; (?s:.)*\n1: {rule}"):
        replace_convolutions(nn.Sequential(nn.Conv2d(1, 1, 3), pool), "R4")
    for options in ({"group": "R4", "skip": ["1"]}, {"group": "Z2"}):
        assert replace_convolutions(nn.Sequential(nn.Conv2d(1, 1, 3), pool), **options)[1] is pool


def test_pools_given_lists_modes_and_hooks():
    model = nn.Sequential(nn.Conv2d(1, 1, 3), nn.MaxPool2d([3, 3], stride=[2, 2]), nn.AdaptiveAvgPool2d(1)).eval()
    replaced = replace_convolutions(model, "R4")
    assert isinstance(replaced[1], PosedPool) and not replaced[1].training
    hooked = nn.Sequential(nn.Conv2d(1, 1, 3), nn.MaxPool2d(2))
    hooked[1].register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="1: a pool that is replaced must have no hooks: got MaxPool2d"):
        replace_convolutions(hooked, "R4")


def test_pools_with_strides_are_replaced_with_the_convolutions_and_skipped_by_name():
    def made():
        return nn.Sequential(nn.Conv2d(1, 1, 3), nn.MaxPool2d(2), nn.AvgPool2d(3, 1))

    model = replace_convolutions(made(), "R4")
    assert isinstance(model[1], PosedPool) and isinstance(model[2], nn.AvgPool2d)
    assert isinstance(replace_convolutions(made(), "R4", skip=["1"])[1], nn.MaxPool2d)
    assert "count_include_pad=False" in repr(PosedPool(nn.AvgPool2d(3, count_include_pad=False)))
    assert repr(model[1]) == "PosedPool(max, kernel=2, stride=2, padding=0)"
    pool = model[1]
    assert replace_convolutions(model, "R4")[1] is pool


@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), nn.MaxPool2d(3, 2, 1)])
def test_gradients_turn_on_an_even_background_too(pool):
    """Planted: torch's pool, which gives all of it to the first of the largest pixels."""
    x = torch.full((1, 1, 8, 8), 0.5).double()
    x[..., 1, 2] = 1
    for module, is_even in ((PosedPool(pool), True), (pool, False)):
        errors = gradient_errors(nn.Sequential(module, Squared()), x, "R4")["the input"]
        assert (max(errors.values()) < 1e-12) is is_even


class Squared(nn.Module):
    def forward(self, x):
        return x.square().sum((2, 3))
