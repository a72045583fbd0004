"""The op in PyTorch's own operators is the same law."""

import pytest
import torch

from gsa import ops
from gsa.ops._call import Call
from gsa.ops._plain import attend_plainly
from tests.ops.cases import CASES, tensors


@pytest.mark.parametrize("poses, map_", CASES)
def test_in_plain_operators_the_output_is_that_of_the_reference(poses, map_):
    five, window, form = tensors(poses, map_)
    expected = ops.attend(*five, window, form=form, backend="reference")
    call = Call(*five, window, torch.tensor(0), form == "regular", 0.0)
    torch.testing.assert_close(attend_plainly(call), expected, rtol=1e-12, atol=1e-12)


def test_planted_a_window_that_is_not_the_one_asked_for_is_noticed():
    five, window, form = tensors("regular", "H≠W")
    expected = ops.attend(*five, window, form=form, backend="reference")
    plain = attend_plainly(Call(*five, window.flip(0), torch.tensor(0), True, 0.0))
    assert (plain - expected).abs().max() > 1e-3
