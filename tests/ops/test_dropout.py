"""Attention dropout: a function of a seed and of places, with the right rate."""

import pytest
import torch

from gsa import ops
from gsa.ops._dropout import dropped, element_hash, mix, slice_hash
from tests.ops.cases import tensors


def test_the_hash_is_murmur3s_finaliser():
    """Values of fmix32, worked out with unbounded integers."""

    def fmix32(x):
        x ^= x >> 16
        x = x * 0x85EBCA6B % 2**32
        x ^= x >> 13
        x = x * 0xC2B2AE35 % 2**32
        return x ^ (x >> 16)

    values = [0, 1, 2, 12345, 2**31 - 1, 2**31, 2**32 - 1]
    signed = torch.tensor([v - 2**32 if v >= 2**31 else v for v in values], dtype=torch.int32)
    assert [v % 2**32 for v in mix(signed).tolist()] == [fmix32(v) for v in values]


def test_the_rate_is_right_everywhere_and_slices_differ():
    element = element_hash(
        torch.arange(16)[:, None, None].int(),
        torch.arange(100)[:, None].int(),
        torch.arange(25).int(),
        pixels=100,
        offsets=25,
    )
    mask = dropped(element, slice_hash(torch.tensor(3), 0, 64).view(-1, 1, 1, 1), 0.1).double()
    assert abs(mask.mean() - 0.1) < 1e-3
    for axis in range(4):  # no slice, pose, pixel or offset is favoured
        rest = [a for a in range(4) if a != axis]
        assert (mask.mean(rest) - 0.1).abs().max() < 0.01
    pairs = mask.flatten(1).cov()  # slices are uncorrelated
    assert (pairs - pairs.diag().diag()).abs().max() < 0.01


@pytest.mark.parametrize("poses", ["lifting", "regular", "summed"])
@pytest.mark.parametrize("backend", ops.backends("cpu"))
def test_the_mean_over_seeds_is_the_result_without_dropout(backend, poses):
    five, window, form = tensors(poses, "square")
    clean = ops.attend(*five, window, form=form, backend=backend)
    mean = sum(
        ops.attend(*five, window, form=form, dropout=0.2, seed=torch.tensor(s), backend=backend) for s in range(400)
    )
    assert ((mean / 400 - clean).norm() / clean.norm()).item() < 0.06


def test_the_seed_decides_and_torchs_generator_draws_it():
    five, window, form = tensors("regular", "square")
    one = ops.attend(*five, window, form=form, dropout=0.5, seed=torch.tensor(1))
    assert torch.equal(one, ops.attend(*five, window, form=form, dropout=0.5, seed=torch.tensor(1)))
    assert not torch.equal(one, ops.attend(*five, window, form=form, dropout=0.5, seed=torch.tensor(2)))
    torch.manual_seed(4)
    drawn = ops.attend(*five, window, form=form, dropout=0.5)
    torch.manual_seed(4)
    assert torch.equal(drawn, ops.attend(*five, window, form=form, dropout=0.5))
    assert not torch.equal(drawn, ops.attend(*five, window, form=form, dropout=0.5))


def test_without_dropout_the_generator_is_left_alone():
    five, window, form = tensors("regular", "square")
    state = torch.get_rng_state()
    ops.attend(*five, window, form=form)
    assert torch.equal(state, torch.get_rng_state())
