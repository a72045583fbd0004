"""The yardstick of the benchmarks computes the same thing as the op."""

import direct
import pytest
import torch

import gsa
from tests.ops.cases import CASES, tensors


@pytest.mark.parametrize("poses, map_", CASES)
def test_the_direct_evaluation_equals_the_op(poses, map_):
    five, window, form = tensors(poses, map_)
    expected = gsa.ops.attend(*five, window, form=form)
    torch.testing.assert_close(direct.attend(*five, window, form=form), expected)
    if map_ == "prime sides":
        expected = gsa.ops.attend(*five, window, form=form, crop=2)
        torch.testing.assert_close(direct.attend(*five, window, form=form, crop=2), expected)


def test_everywhere_replaces_the_op_in_all_layers_and_puts_it_back(float64):
    network, x = gsa.create_model("digits_r4_sa").eval(), torch.rand(1, 1, 16, 16)
    expected, ours = network(x), gsa.ops.attend
    with direct.everywhere():
        assert gsa.ops.attend is direct.attend
        torch.testing.assert_close(network(x), expected)
    assert gsa.ops.attend is ours
