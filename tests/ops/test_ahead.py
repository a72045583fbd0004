"""Kernels that are needed next are compiled by other threads, told by a GPU that is not there."""

from concurrent.futures import wait
from contextlib import nullcontext

import pytest
import torch

triton = pytest.importorskip("triton")

from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.runtime.driver import driver  # noqa: E402
from triton.runtime.jit import JITFunction  # noqa: E402

from gsa.ops._call import Call, Needed  # noqa: E402
from gsa.ops.impl.triton import _ahead, _launch  # noqa: E402

KERNELS = ("forward", "queries_backward", "keys_backward", "spatial_backward")


class H100:
    """What Triton asks of a driver before it launches."""

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)


class Compiled:
    """A kernel whose launch only compiles."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        return lambda *arguments, **plan: self.kernel.warmup(*arguments, grid=grid, **plan)

    def __getattr__(self, name):
        return getattr(self.kernel, name)


@pytest.fixture
def compilations(monkeypatch, tmp_path):
    """Names of the kernels that the thread of the test has compiled to the end, and no other thread had begun before.

    Python's bug of threads that read code at the same time (`_launch._launch`) has either begun again at times.
    """
    from threading import get_ident

    ours, here, names, begun_elsewhere = JITFunction._do_compile, get_ident(), [], set()

    def noted(self, key, *arguments, **options):
        if get_ident() != here:
            begun_elsewhere.add((self.fn, key))
        compiled = ours(self, key, *arguments, **options)
        if get_ident() == here and (self.fn, key) not in begun_elsewhere:
            names.append(self.__name__)
        return compiled

    before = driver._active
    driver.set_active(H100())
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(JITFunction, "_do_compile", noted)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(_launch, "_FORESEEN", set())
    monkeypatch.setattr(_ahead, "_UNDER_WAY", {})
    kernels = {regular: _launch._kernels(regular) for regular in (False, True)}
    for kernel in (*kernels[False].values(), *kernels[True].values()):
        kernel.device_caches.clear()
    monkeypatch.setattr(_launch, "_kernels", lambda regular: {n: Compiled(k) for n, k in kernels[regular].items()})
    yield names
    wait(_ahead._UNDER_WAY.values())
    driver._active = before
    for kernel in (*kernels[False].values(), *kernels[True].values()):
        kernel.device_caches.clear()


def call_of(regular, dropout=0.1, trains=True, dtype=torch.float32):
    query = torch.randn(2, 3, 2, 2, 5, 7, dtype=dtype).permute(0, 1, 3, 4, 5, 2).requires_grad_(trains)
    spatial, pose = torch.randn(2, 3, 3, 2, dtype=dtype), torch.randn(2, 2, 2, dtype=dtype)
    window, seed = torch.ones(3, 3, dtype=torch.bool), torch.tensor(0)
    return Call(query, query, query, spatial, pose, window, seed, regular, dropout)


@pytest.mark.parametrize("regular", [True, False])
def test_the_backward_pass_and_validation_find_their_kernels(compilations, regular):
    call = call_of(regular)
    out = _launch.forward(call)
    assert compilations == ["forward"]
    _launch.backward(torch.randn_like(out), call, Needed())
    _launch.forward(call_of(regular, dropout=0.0, trains=False))
    assert compilations == ["forward"]


def test_planted_kernels_of_another_dtype_are_not_those_that_are_needed(compilations, monkeypatch):
    imagined = _launch._imagined
    monkeypatch.setattr(_launch, "_imagined", lambda x: imagined(x.half() if x.is_floating_point() else x))
    call = call_of(True)
    _launch.backward(torch.randn_like(_launch.forward(call)), call, Needed())
    assert compilations == list(KERNELS)


def test_nothing_is_compiled_ahead_where_nothing_is_trained(compilations):
    _launch.forward(call_of(True, trains=False))
    assert compilations == ["forward"] and not _ahead._UNDER_WAY


def test_it_is_begun_once(compilations):
    call = call_of(True)
    _launch.forward(call)
    begun = dict(_ahead._UNDER_WAY)
    assert [key[0] for key in begun] == [*KERNELS[1:], "forward"]
    _launch.forward(call)
    assert begun == _ahead._UNDER_WAY


def test_who_is_interrupted_waits_again(compilations, monkeypatch):
    def interrupted(futures):
        raise KeyboardInterrupt

    call = call_of(True)
    out = _launch.forward(call)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(_ahead, "wait", interrupted)
        _launch.backward(torch.randn_like(out), call, Needed())
    _launch.backward(torch.randn_like(out), call, Needed())
    assert compilations == ["forward"]


def test_code_that_threads_read_at_the_same_time_is_read_again(compilations, monkeypatch):
    """Planted: an error that comes again."""
    call, ours, errors = call_of(True), JITFunction.parse, [SystemError("recursion depth mismatch")]

    def parsed(self):
        if errors and self.__name__ == "forward":
            raise errors.pop()
        return ours(self)

    monkeypatch.setattr(JITFunction, "parse", parsed)
    monkeypatch.setattr(_launch, "_foresee", lambda call: None)
    _launch.forward(call)
    assert not errors and compilations == ["forward"] and not _ahead._UNDER_WAY
    errors += [SystemError("recursion depth mismatch")] * 2
    with pytest.raises(SystemError):
        _launch.forward(call_of(True, trains=False)._replace(dropout=0.25))


def test_what_goes_wrong_is_told_by_the_launch(compilations, monkeypatch):
    def fails(self, *arguments, **options):
        raise RuntimeError("no assembler")

    call = call_of(True)
    with monkeypatch.context() as patch:
        patch.setattr(JITFunction, "run", fails)
        _launch._foresee(call)
        futures = list(_ahead._UNDER_WAY.values())
        assert all(isinstance(future.exception(), RuntimeError) for future in futures) and len(futures) == 4
        with pytest.raises(RuntimeError, match="no assembler"):
            _launch.forward(call)
    out = _launch.forward(call)
    _launch.backward(torch.randn_like(out), call, Needed())
    assert compilations == list(KERNELS)
