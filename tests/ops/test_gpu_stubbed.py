"""Which GPUs the Triton kernels are given to, told by devices that are not there."""

from types import SimpleNamespace

import pytest
import torch

from gsa import ops
from gsa.ops import _registry
from gsa.ops._call import Call
from gsa.ops.impl.cuda import _launch


class OnGPU(torch.Tensor):
    """A tensor without memory that says it is on a GPU."""

    @property
    def device(self):
        return torch.device("cuda")


def query(poses=16, head_dim=32):
    return torch.empty(1, 1, poses, 8, 8, head_dim, device="meta").as_subclass(OnGPU)


@pytest.fixture
def gpu(monkeypatch):
    """gpu(capability, kilobytes of shared memory): such a device seems to be there."""

    def there(capability=(9, 0), kilobytes=227):
        properties = SimpleNamespace(shared_memory_per_block_optin=kilobytes * 1024)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
        monkeypatch.setattr(_launch, "_FOUND", True)

    return there


def test_a_device_with_too_little_shared_memory_is_known_before_the_first_step(gpu):
    gpu(kilobytes=64)
    said = "up to 112 KB of shared memory for 16 key and 16 output poses with heads of 32, but this device has 64 KB"
    first, *_ = lines = ops.explain(query(), form="summed").splitlines()
    assert first.startswith("tiled: chosen because") and "triton would be faster, but its kernels take" in first
    assert sum(said in line for line in lines) == 2
    with pytest.raises(ValueError, match=f"'triton' cannot serve cuda.*{said}"):
        call = _registry._like(query(), "summed")
        _registry.choose(torch.device("cuda"), torch.float32, "triton", call)
    assert ops.explain(query()).startswith("triton: chosen")  # one output pose at a time
    assert ops.explain(query(poses=4), form="summed").startswith("triton: chosen")
    gpu(kilobytes=227)
    assert ops.explain(query(), form="summed").startswith("triton: chosen")


def test_a_call_is_dispatched_by_its_size(gpu, monkeypatch):
    gpu(kilobytes=64)
    seen = []
    monkeypatch.setattr(_registry, "choose", lambda *arguments: seen.append(arguments) or ("tiled", ""))
    five = [torch.zeros(1, 1, 2, 3, 3, 4)] * 3 + [torch.zeros(2, 3, 3, 4), torch.zeros(2, 2, 4)]
    ops.attend(*five, torch.ones(3, 3, dtype=torch.bool))
    assert isinstance(seen[0][3], Call) and seen[0][3].query.shape == five[0].shape


def test_an_old_device_is_known_before_the_first_step(gpu):
    gpu(capability=(7, 5))
    first, *_ = ops.explain(device="cuda").splitlines()
    assert first.startswith("tiled: chosen because")
    assert "it needs compute capability 8.0 or more, but this device has 7.5" in first
    gpu(capability=(8, 0))
    assert ops.explain(device="cuda").startswith("triton: chosen")
