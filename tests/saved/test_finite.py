"""What is not finite is found by name."""

import math

import pytest
import torch
from torch import nn

from gsa.saved import first_not_finite


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["1.weight", "1.running_var"])
def test_the_first_tensor_that_is_not_finite_is_named(name, value):
    state = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).state_dict()
    assert first_not_finite(state | {"step": 3}) is None
    state[name][1] = value
    state["1.running_var"][2] = math.inf
    assert first_not_finite(state) == name


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.bfloat16, torch.complex64])
def test_any_dtype_is_looked_at(dtype):
    assert first_not_finite({"x": torch.ones(3, dtype=dtype)}) is None
