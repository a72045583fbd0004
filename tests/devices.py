"""Where a test is tried: on the CPU always, and on a GPU where that is asked for and there is one."""

import pytest
import torch

__all__ = ["DEVICES", "GPU", "on_gpu"]

# What torch and its compiler say of a GPU is no failure of ours.
GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore"),
]


def on_gpu(*values):
    """A case of a parametrised test for a machine with a GPU."""
    return pytest.param(*values, marks=GPU)


DEVICES = ["cpu", on_gpu("cuda")]
