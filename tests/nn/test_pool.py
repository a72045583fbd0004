"""Pools are exact on the sides they accept, and refuse the others."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

import gsa
from gsa.nn import SpatialPool
from gsa.nn._largest import largest
from gsa.symmetry import assert_equivariant, gradient_errors


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


@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize("kernel, stride", [(2, 2), (3, 2), (3, 3), (4, 4), (1, 2), (2, 3)])
def test_pools_of_wider_windows_are_exact_on_all_sides(kernel, stride, kind, float64):
    pool, plain = (SpatialPool(kernel, stride, kind, on_inexact=policy) for policy in ("widen", "allow"))
    for side in range(kernel, kernel + 2 * stride):
        x = torch.randn(1, 2, 8, side, side)
        assert_equivariant(pool, x, gsa.group("R4M"))
        assert pool(x).shape == plain(x).shape and pool.is_exact_on(side)
        assert torch.equal(pool(x), plain(x)) == plain.is_exact_on(side)
    x = torch.randn(1, 1, kernel + stride, kernel + 1)
    torch.testing.assert_close(pool(x.mT), pool(x).mT)
    with pytest.raises(ValueError, match="nearest sides"):
        pool(torch.rand(1, 1, kernel - 1, kernel))


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


def test_a_side_smaller_than_the_window_is_refused_whatever_is_allowed():
    for kind in ("max", "average"):
        with pytest.raises(ValueError, match="got a 2×5 map; nearest sides that stay exact: 3"):
            SpatialPool(3, 2, kind, on_inexact="allow")(torch.rand(1, 1, 2, 5))
        with pytest.raises(ValueError, match="got a 6×2 map; nearest sides that stay exact: 3"):
            SpatialPool(3, 2, kind, on_inexact="allow")(torch.rand(1, 1, 6, 2))


@pytest.mark.parametrize("kernel, stride, side", [(2, 2, 7), (3, 2, 7), (3, 1, 5), (2, 3, 8), (4, 4, 9)])
def test_the_largest_pixel_and_its_gradient_are_those_of_torch_where_there_is_one(kernel, stride, side, float64):
    x, twin = (torch.randn(2, side, side + 1, requires_grad=True) for _ in range(2))
    with torch.no_grad():
        twin.copy_(x)
    kernel = (kernel, kernel + (side - kernel + 1) % stride)  # as wide as the other side allows
    ours, theirs = largest(x, kernel, stride), F.max_pool2d(twin, kernel, stride)
    assert torch.equal(ours, theirs)
    weights = torch.randn_like(ours)
    compiled = torch.compile(partial(largest, kernel=kernel, stride=stride), backend="eager", fullgraph=True)(x)
    gradient, *others = (
        torch.autograd.grad((weights * y).sum(), of)[0] for y, of in ((theirs, twin), (ours, x), (compiled, x))
    )
    for other in others:
        torch.testing.assert_close(other, gradient)
    assert torch.autograd.gradcheck(lambda x: largest(x, kernel, stride), x)
    assert torch.autograd.gradgradcheck(lambda x: largest(x, kernel, stride).square(), x, fast_mode=side > 8)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_pixels_that_are_largest_together_share_the_gradient(float64):
    x = torch.tensor([[5.0, 5, 1, 2], [5, 0, 2, 2], [0, 0, 7, 0], [0, 0, 0, 7]])
    expected = torch.tensor([[2.0, 2, 0, 2], [2, 0, 2, 2], [1.5, 1.5, 3, 0], [1.5, 1.5, 0, 3]]) / 6
    for derivative in (torch.func.jacrev, torch.func.jacfwd):
        assert torch.equal(derivative(lambda x: largest(x, (2, 2), 2).sum())(x), expected)
    compiled = torch.compile(lambda x: largest(x, (2, 2), 2).sum(), backend="eager", fullgraph=True)
    assert torch.equal(torch.autograd.grad(compiled(x.requires_grad_()), x)[0], expected)
    each = torch.func.vmap(torch.func.grad(lambda x: largest(x, (2, 2), 2).sum()))(torch.stack((x, x.rot90())).detach())
    assert torch.equal(each, torch.stack((expected, expected.rot90())))


@pytest.mark.parametrize("kernel, stride, side", [(2, 2, 28), (3, 2, 29), (4, 4, 28)])
def test_gradients_turn_with_a_picture_on_an_even_background(kernel, stride, side, float64, monkeypatch):
    picture = torch.zeros(1, 1, side, side)
    picture[..., 6:15, 9:20] = torch.rand(9, 11)
    pool = SpatialPool(kernel, stride)
    assert max(gradient_errors(pool, picture, "R4M")["the input"].values()) < 1e-14
    odd, wide = picture[..., 1:, 1:], SpatialPool(kernel, stride, on_inexact="widen")
    assert max(gradient_errors(wide, odd, "R4M")["the input"].values()) < 1e-14
    monkeypatch.setattr("gsa.nn._pool.largest", F.max_pool2d)  # planted: all to the first of them
    assert max(gradient_errors(pool, picture, "R4M")["the input"].values()) > 0.1


def test_what_a_trained_network_looks_at_turns_with_the_digit(float64, monkeypatch):
    picture = torch.zeros(1, 1, 28, 28)
    picture[..., 6:15, 9:20] = torch.rand(9, 11)
    network = gsa.create_model("rotmnist_gsa", pretrained=True).double().eval()

    def error():
        one, other = (
            torch.autograd.grad(network(x.requires_grad_()).logsumexp(1).sum(), x)[0].rot90(-turns, (-2, -1))
            for turns, x in enumerate((picture.clone(), picture.rot90(1, (-2, -1))))
        )
        return ((other - one).norm() / one.norm()).item()

    assert error() < 1e-12

    def planted(x, kernel, stride):
        return F.max_pool2d(x.flatten(1, 2), kernel, stride).unflatten(1, x.shape[1:3])

    monkeypatch.setattr("gsa.nn._pool.largest", planted)
    assert error() > 1e-2


@pytest.mark.filterwarnings("ignore:.*torch.jit", "ignore::torch.jit.TracerWarning")
def test_a_traced_pool_can_be_saved(tmp_path):
    x = torch.randn(1, 2, 4, 6, 6)
    torch.jit.trace(SpatialPool(2), x).save(tmp_path / "pool.pt")
    assert torch.equal(torch.jit.load(tmp_path / "pool.pt")(x), SpatialPool(2)(x))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_what_is_pooled_may_be_changed_in_place(size):
    pool, x = gsa.nn.SpatialPool(size), torch.rand(2, 2, 4, 12, 12, requires_grad=True)
    found, expected = (
        torch.autograd.grad(activation(pool(x - 0.5)).square().sum(), x)[0]
        for activation in (torch.nn.ReLU(inplace=True), torch.nn.ReLU())
    )
    torch.testing.assert_close(found, expected)
