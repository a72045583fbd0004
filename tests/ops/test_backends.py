"""Every backend against the law: output and every gradient."""

import pytest
import torch
from torch import library

from gsa import ops
from gsa.ops import _registry
from gsa.ops._call import Call, Needed
from tests.ops.cases import CASES, MAPS, POSES, tensors

FAST = [name for name in ops.backends("cpu") if name != "reference"]


def run(five, window, form, backend, cotangent=None, **options):
    """Output and the five gradients."""
    output = ops.attend(*five, window, form=form, backend=backend, **options)
    cotangent = torch.randn_like(output) if cotangent is None else cotangent
    return output, torch.autograd.grad(output, five, cotangent), cotangent


def largest_error(actual, expected):
    """max |a − b| relative to max |b|, or absolute where b vanishes (gradients that are zero by symmetry)."""
    return ((actual - expected).abs().max() / expected.abs().max().clamp_min(1e-3)).item()


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("poses, map_", CASES)
@pytest.mark.parametrize("backend", FAST)
def test_output_and_every_gradient_equal_the_reference(backend, poses, map_, dropout):
    five, window, form = tensors(poses, map_)
    options = {"dropout": dropout, "seed": torch.tensor(7)}
    expected, gradients, cotangent = run(five, window, form, "reference", **options)
    actual, actual_gradients, _ = run(five, window, form, backend, cotangent, **options)
    assert largest_error(actual, expected) < 1e-10
    for a, b in zip(actual_gradients, gradients, strict=True):
        assert largest_error(a, b) < 1e-10


@pytest.mark.parametrize("map_, crop", [("prime sides", 2), ("H≠W", 1), ("global", 1), ("one row inside", 1)])
@pytest.mark.parametrize("poses", POSES)
@pytest.mark.parametrize("backend", FAST)
def test_a_crop_leaves_out_what_border_pixels_ask(backend, poses, map_, crop):
    """And with the same masks of dropout inside."""
    height, width = MAPS[map_][:2]
    five, window, form = tensors(poses, map_)
    options = {"form": form, "dropout": 0.3, "seed": torch.tensor(7)}
    expected = ops.attend(*five, window, backend="reference", **options)
    expected = expected[:, :, :, crop : height - crop, crop : width - crop]
    gradients = torch.autograd.grad(expected, five, cotangent := torch.randn_like(expected))
    actual, actual_gradients, _ = run(five, window, backend=backend, cotangent=cotangent, crop=crop, **options)
    law = run(five, window, backend="reference", cotangent=cotangent, crop=crop, **options)[:2]
    for found, of_found in ((actual, actual_gradients), law):
        for a, b in zip((found, *of_found), (expected, *gradients), strict=True):
            assert a.shape == b.shape and largest_error(a, b) < 1e-10


@pytest.mark.parametrize("head_dim", [1, 10, 16, 32])
@pytest.mark.parametrize("order", [1, 8, 16])
@pytest.mark.parametrize("backend", FAST)
def test_head_sizes_and_orders(backend, order, head_dim):
    draw = lambda *shape: torch.randn(*shape, dtype=torch.float64, requires_grad=True)  # noqa: E731
    for form in ("regular", "summed"):
        q, k, v = (draw(1, 2, order, 5, 6, head_dim) for _ in range(3))
        five = (q, k, v, draw(order, 3, 3, head_dim), draw(order, order, head_dim))
        window = torch.ones(3, 3, dtype=torch.bool)
        expected, gradients, cotangent = run(five, window, form, "reference")
        actual, actual_gradients, _ = run(five, window, form, backend, cotangent)
        for a, b in zip((actual, *actual_gradients), (expected, *gradients), strict=True):
            assert largest_error(a, b) < 1e-10


@pytest.mark.parametrize("backend", FAST)
def test_many_chunks_equal_one(backend, monkeypatch):
    """Whatever a backend cuts the work into must not show."""
    from gsa.ops.impl.tiled import _work

    for map_ in ("prime sides", "global"):
        five, window, form = tensors("summed", map_)
        expected, gradients, cotangent = run(five, window, form, "reference", dropout=0.2, seed=torch.tensor(3))
        monkeypatch.setitem(_work._CHUNK, "cpu", 64)
        actual, actual_gradients, _ = run(five, window, form, backend, cotangent, dropout=0.2, seed=torch.tensor(3))
        for a, b in zip((actual, *actual_gradients), (expected, *gradients), strict=True):
            assert largest_error(a, b) < 1e-10


@pytest.mark.parametrize("asked", [(0,), (1,), (2,), (3,), (4,), (1, 3)])
@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_gradients_that_nobody_asks_for_are_left_out(backend, asked):
    five, window, form = tensors("summed", "square")
    _, gradients, cotangent = run(five, window, form, backend)
    some = [t.detach().requires_grad_(i in asked) for i, t in enumerate(five)]
    output = ops.attend(*some, window, form=form, backend=backend)
    found = torch.autograd.grad(output, [some[i] for i in asked], cotangent, create_graph=True)
    assert all(largest_error(a, gradients[i]) < 1e-10 for i, a in zip(asked, found, strict=True))
    call = Call(*(t.detach() for t in five), window, torch.tensor(0), False, 0.0)
    needed = Needed(*(i in asked for i in range(5)))
    direct = _registry.get(backend).backward(cotangent, call, needed)
    assert [gradient is not None for gradient in direct] == list(needed)


@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_second_derivatives_of_some_gradients(backend):
    five, window, form = tensors("regular", "window larger than the map", batch=1, heads=1, head_dim=2)
    still = [t.detach() for t in five[2:]]

    def function(query, key):
        return ops.attend(query, key, *still, window, form=form, backend=backend)

    assert torch.autograd.gradgradcheck(function, tuple(five[:2]), fast_mode=True)


@pytest.mark.parametrize("poses", ["lifting", "regular", "summed"])
@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_gradcheck_to_second_order(backend, poses):
    five, window, form = tensors(poses, "window larger than the map", batch=1, heads=1, head_dim=2)

    def function(*five):
        return ops.attend(*five, window, form=form, dropout=0.3, seed=torch.tensor(5), backend=backend)

    assert torch.autograd.gradcheck(function, five)
    assert torch.autograd.gradgradcheck(function, five, fast_mode=True)  # along random directions


@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_second_derivatives_of_a_cropped_map(backend):
    five, window, form = tensors("regular", "one row inside", batch=1, heads=1, head_dim=2)
    assert torch.autograd.gradgradcheck(
        lambda *five: ops.attend(*five, window, form=form, crop=1, backend=backend), five, fast_mode=True
    )


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # torch's own, in its check
@pytest.mark.parametrize("poses", ["lifting", "regular", "summed"])
@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_opcheck(backend, poses):
    five, window, form = tensors(poses, "square", batch=1)
    arguments = (*five, window, torch.tensor(1), form == "regular", 0.1, backend)
    library.opcheck(torch.ops.gsa.attend.default, arguments)
    library.opcheck(torch.ops.gsa.attend.default, (*arguments, 1))  # cropped


@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_non_contiguous_inputs_and_cotangents(backend):
    five, window, form = tensors("regular", "H≠W")
    strided = [t.detach().transpose(-1, -2).contiguous().transpose(-1, -2).requires_grad_() for t in five]
    assert not strided[0].is_contiguous()
    expected, gradients, cotangent = run(five, window, form, "reference")
    cotangent = cotangent.mT.contiguous().mT
    actual, actual_gradients, _ = run(strided, window, form, backend, cotangent)
    for a, b in zip((actual, *actual_gradients), (expected, *gradients), strict=True):
        assert largest_error(a, b) < 1e-10


@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_bitwise_repeatable(backend):
    five, window, form = tensors("summed", "prime sides", dtype=torch.float32)
    first, gradients, cotangent = run(five, window, form, backend, dropout=0.1, seed=torch.tensor(9))
    again, gradients_again, _ = run(five, window, form, backend, cotangent, dropout=0.1, seed=torch.tensor(9))
    assert torch.equal(first, again)
    assert all(torch.equal(a, b) for a, b in zip(gradients, gradients_again, strict=True))


@pytest.mark.parametrize("poses", ["lifting", "regular", "summed"])
@pytest.mark.parametrize("map_", ["square", "global"])
@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_a_nan_stays_in_its_own_sample(backend, map_, poses):
    five, window, form = tensors(poses, map_)
    clean, gradients, cotangent = run(five, window, form, backend)
    query, key, value, *tables = (t.detach().clone() for t in five)
    for t in (query, key, value):
        t[0, 0, 0, 1, 1, 0] = torch.nan
    poisoned = [t.requires_grad_() for t in (query, key, value, *tables)]
    dirty, dirty_gradients, _ = run(poisoned, window, form, backend, cotangent)
    assert dirty[0].isnan().any()
    assert torch.equal(dirty[1], clean[1])
    for a, b in zip(dirty_gradients[:3], gradients[:3], strict=True):
        assert torch.equal(a[1], b[1])


@pytest.mark.parametrize("dtype, budget", [(torch.float32, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 4e-3)])
@pytest.mark.parametrize("backend", FAST)
def test_low_precision_within_its_budget(backend, dtype, budget):
    five, window, form = tensors("summed", "square")
    rounded = [t.detach().to(dtype) for t in five]
    expected = ops.attend(*(t.double() for t in rounded), window, form=form, backend="reference")
    actual = ops.attend(*rounded, window, form=form, backend=backend)
    assert actual.dtype == dtype
    assert largest_error(actual.double(), expected) < budget


def test_a_wrong_encoding_is_caught():
    """Planted failure: the comparison above sees an encoding that is read in the wrong order."""
    five, window, form = tensors("regular", "square")
    expected, _, _ = run(five, window, form, "reference")
    mirrored = [*five[:3], five[3].flip(1), five[4]]
    actual = ops.attend(*mirrored, window.flip(0), form=form, backend="tiled")
    assert largest_error(actual, expected) > 1e-3


@pytest.mark.parametrize("poses", ["regular", "summed"])
@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_tiles_that_hang_over_by_more_than_the_window_reaches(backend, poses):
    """13 pixels in tiles of 5: two columns beyond the map see nothing of it."""
    five, _, form = tensors(poses, "prime sides")
    five = [x[:, :, :, :, :3] if x.ndim == 6 else x for x in five]
    five[3] = five[3][:, 1:4, 1:4]
    window = torch.ones(3, 3, dtype=torch.bool)
    results = []
    for name in ("reference", backend):
        output = ops.attend(*five, window, form=form, backend=name)
        results.append((output, *torch.autograd.grad(output.square().sum(), five)))
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_keys_that_take_no_part_take_none_however_low_the_others_score(backend):
    five, window, form = tensors("regular", "square")
    five = [five[0].detach().abs() * 1e4, -five[1].detach().abs() * 1e2, *five[2:]]
    expected = ops.attend(*five, window, form=form, backend="reference")
    torch.testing.assert_close(ops.attend(*five, window, form=form, backend=backend), expected)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning")  # of torch.func.jvp
@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_autocast_does_not_reach_into_the_op(backend):
    """Nor into its second derivatives, or those of torch.func."""
    five, window, form = tensors("regular", "square", dtype=torch.float32)

    def of_query(query):
        return ops.attend(query, *five[1:], window, form=form, backend=backend)

    results = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            output = of_query(five[0])
            first = torch.autograd.grad(output.square().sum(), five, create_graph=True)
            second = torch.autograd.grad(sum(gradient.square().sum() for gradient in first), five)
            results.append((output, *first, *second, *torch.func.jvp(of_query, (five[0],), (five[0],))))
    assert all(map(torch.equal, *results))


@pytest.mark.parametrize("form", ["regular", "summed"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_derivatives_of_torch_func_sum_halves_in_float32(form, dtype):
    """Scores beyond what float16 holds; planted: what would come of halves alone."""
    five, window, form = tensors(form, "square", dtype=torch.float32)
    halves = [(x * (150 if place < 2 else 1)).detach().to(dtype) for place, x in enumerate(five)]

    def of_query(query):
        return ops.attend(query, *halves[1:], window, form=form)

    output, transposed = torch.func.vjp(of_query, halves[0])
    torch.testing.assert_close(output, of_query(halves[0]), rtol=1e-2, atol=1e-2)
    assert output.dtype == dtype and transposed(torch.ones_like(output))[0].isfinite().all()
    assert not (halves[0] @ halves[1].mT).isfinite().all() or dtype == torch.bfloat16


def test_maps_of_attention_are_no_larger_than_the_picture_allows():
    five, window, form = tensors("regular", "window larger than the map")
    query, key, _, spatial, pose = five
    weights = ops.attention_weights(query, key, spatial, pose, torch.ones_like(window), form=form)
    assert weights.shape[-2:] == (3, 5)
