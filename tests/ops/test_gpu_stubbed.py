"""Which GPUs the Triton kernels are given to, told by devices that are not there."""

import pytest
import torch

from gsa import ops
from gsa.ops.impl.cuda import _launch


@pytest.fixture
def gpu(monkeypatch):
    """gpu(capability): such a device seems to be there."""

    def there(capability=(9, 0)):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        monkeypatch.setattr(_launch, "_FOUND", True)

    return there


def test_an_old_device_is_known_before_the_first_step(gpu):
    gpu(capability=(7, 5))
    first, *_ = ops.explain(device="cuda").splitlines()
    assert first.startswith("tiled: chosen because")
    assert "it needs compute capability 8.0 or more, but this device has 7.5" in first
    gpu(capability=(8, 0))
    assert ops.explain(device="cuda").startswith("triton: chosen")
