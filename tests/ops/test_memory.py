"""Out of memory: the error is the backend's own, with a note on what it was doing and what needs less."""

import pytest
import torch

from gsa import ops
from gsa.ops import _registry
from tests.ops.cases import tensors

CPU = RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried ...")
ERRORS = [torch.OutOfMemoryError("CUDA out of memory."), CPU, MemoryError("not enough memory")]


def fail(error: Exception):
    def run(*arguments):
        raise type(error)(*error.args)

    return run


def planted(monkeypatch, error, stores_scores, forward=None):
    tiled = _registry._BACKENDS["tiled"]
    backend = _registry.Backend(forward or fail(error), fail(error), tiled.refusal, "", stores_scores=stores_scores)
    monkeypatch.setitem(_registry._BACKENDS, "planted", backend)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_the_note_names_backend_sizes_and_bytes(monkeypatch, error):
    planted(monkeypatch, error, stores_scores=True)
    five, window, form = tensors("summed", "prime sides", dtype=torch.float32)
    with pytest.raises(type(error)) as caught:
        ops.attend(*five, window, form=form, backend="planted")
    (note,) = caught.value.__notes__
    assert caught.value.args == error.args
    assert "in the forward pass of attention on the 'planted' backend, cpu, torch.float32" in note
    assert "batch 2, 2 heads of 4, 4 query, 4 key and 4 output poses, maps of 13×11, a window of 5×5" in note
    features, tables = 4 * (2 * 2 * 4 * 13 * 11 * 4), 4 * 5 * 5 * 4 + 4 * 4 * 4
    assert f"inputs and output take {(features + tables) * 4 / 1000:.3g} kB" in note
    assert f"in the summed form, {2 * 2 * 4**3 * 13 * 11 * 25 * 4 / 1e6:.3g} MB" in note
    assert f"it stores them all; {ops.backends('cpu')[0]!r} does not, and needs less" in note


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_the_backward_pass_has_its_note(monkeypatch, error):
    planted(monkeypatch, error, stores_scores=False, forward=_registry.get("tiled").forward)
    five, window, form = tensors("regular", "square")
    output = ops.attend(*five, window, form=form, backend="planted")
    with pytest.raises(type(error)) as caught:
        output.sum().backward()
    (note,) = caught.value.__notes__
    assert "in the backward pass of attention on the 'planted' backend, cpu, torch.float64" in note
    assert "no backend needs much less: a smaller batch does" in note


def test_other_errors_have_none(monkeypatch):
    """Planted failure: not every error is one of memory."""
    planted(monkeypatch, RuntimeError("a bug"), stores_scores=True)
    five, window, form = tensors("regular", "square")
    with pytest.raises(RuntimeError, match="a bug") as caught:
        ops.attend(*five, window, form=form, backend="planted")
    assert not hasattr(caught.value, "__notes__")


def test_scores_of_the_regular_form_are_one_map_for_each_pair_of_poses(monkeypatch):
    planted(monkeypatch, CPU, stores_scores=True)
    five, window, form = tensors("regular", "prime sides", dtype=torch.float32)
    with pytest.raises(RuntimeError) as caught:
        ops.attend(*five, window, form=form, backend="planted")
    assert f"in the regular form, {2 * 2 * 4**2 * 13 * 11 * 25 * 4 / 1e3:.3g} kB" in caught.value.__notes__[0]
