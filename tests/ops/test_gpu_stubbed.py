"""Which GPUs the Triton kernels are given to, and how they are launched, told by devices that are not there."""

from contextlib import contextmanager
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from gsa import ops
from gsa.ops._call import Call, Needed
from gsa.ops.impl.triton import _launch

SECOND = torch.device("cuda", 1)


@pytest.fixture
def gpu(monkeypatch):
    """gpu(capability): such a device seems to be there."""

    def there(capability=(9, 0)):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        monkeypatch.setattr(_launch, "_FOUND", True)
        monkeypatch.setattr(_launch, "_CAN_LAUNCH", True)

    return there


def test_an_old_device_is_known_before_the_first_step(gpu):
    gpu(capability=(7, 5))
    first, *_ = ops.explain(device="cuda").splitlines()
    assert first.startswith("tiled: chosen because")
    assert "it needs compute capability 8.0 or more, but this device has 7.5" in first
    gpu(capability=(8, 0))
    assert ops.explain(device="cuda").startswith("triton: chosen")


def test_where_no_compiler_is_installed_others_are_chosen(gpu, monkeypatch):
    """As in slim images; Triton would fail in the first step."""
    gpu()
    monkeypatch.setattr(_launch, "_CAN_LAUNCH", False)
    first, *_ = ops.explain(device="cuda").splitlines()
    assert first.startswith("tiled: chosen because") and "it needs a C compiler, gcc or clang" in first


class Launch(NamedTuple):
    """Which kernel, of how many programs, while which device was current, with tensors of which devices."""

    name: str
    grid: tuple[int, ...]
    current: torch.device
    devices: set[torch.device]


@pytest.fixture
def launches(monkeypatch):
    """launches(regular, batch) → those of forward and backward for tensors on a second GPU; the first is current."""
    pytest.importorskip("triton")
    current, seen = [torch.device("cuda", 0)], []

    @contextmanager
    def entered(device):
        current.append(device)
        yield
        current.pop()

    class Recorded:
        def __init__(self, name):
            self.name = name

        def __getitem__(self, grid):
            def launch(*arguments, **plan):
                devices = {x.device for x in arguments if isinstance(x, Tensor)}
                seen.append(Launch(self.name, grid, current[-1], devices))

            return launch

    kernels = {name: Recorded(name) for name in ("forward", "queries_backward", "keys_backward", "spatial_backward")}
    monkeypatch.setattr("torch._subclasses.fake_tensor.init_gpu_context", lambda device: None)  # where one is there
    monkeypatch.setattr(torch.cuda, "device", entered)
    monkeypatch.setattr(_launch, "_kernels", lambda regular: kernels)

    def of(regular, batch=2):
        seen.clear()
        with FakeTensorMode(), SECOND:
            query, spatial, pose = torch.empty(batch, 3, 4, 5, 7, 2), torch.empty(4, 3, 3, 2), torch.empty(4, 4, 2)
            window, seed = torch.ones(3, 3, dtype=torch.bool), torch.zeros((), dtype=torch.int64)
            call = Call(query, query, query, spatial, pose, window, seed, regular, 0.1)
            _launch.backward(_launch.forward(call), call, Needed())
        assert {launch.name for launch in seen} == set(kernels) and len(seen) == len(kernels)
        return list(seen)

    return of


@pytest.mark.parametrize("regular", [True, False])
def test_kernels_are_launched_on_the_device_of_their_tensors(launches, regular):
    assert {launch.current for launch in launches(regular)} == {SECOND}
    assert all(launch.devices == {SECOND} for launch in launches(regular))


@pytest.mark.parametrize("batch", [1, 30_000])
@pytest.mark.parametrize("regular", [True, False])
def test_grids_have_one_axis(launches, regular, batch):
    """Of the others, none may be longer than 65 535, which is fewer than there can be slices."""
    for launch in launches(regular, batch):
        assert len(launch.grid) == 1 and launch.grid[0] % (3 * batch) == 0 and 0 < launch.grid[0] < 2**31
