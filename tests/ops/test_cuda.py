"""Every backend on a GPU against the float64 reference on the CPU:  pytest -m gpu"""

import pytest
import torch

from gsa import ops
from tests.ops.cases import CASES, tensors
from tests.ops.test_backends import largest_error, run

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("poses, map_", CASES)
@pytest.mark.parametrize("backend", [name for name in ops.backends() if name != "native"])
def test_output_and_gradients_on_the_gpu(backend, poses, map_, dropout):
    five, window, form = tensors(poses, map_)
    expected, gradients, cotangent = run(five, window, form, "reference", dropout=dropout, seed=torch.tensor(7))
    there = [t.detach().cuda().requires_grad_() for t in five]
    options = {"dropout": dropout, "seed": torch.tensor(7, device="cuda")}
    actual, actual_gradients, _ = run(there, window.cuda(), form, backend, cotangent.cuda(), **options)
    for a, b in zip((actual, *actual_gradients), (expected, *gradients), strict=True):
        assert largest_error(a.cpu(), b) < 1e-10
