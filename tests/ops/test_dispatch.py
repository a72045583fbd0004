"""Which backend serves a call: the one that is named, or the first of those that can, with the reason."""

import logging
import threading

import pytest
import torch
import torch.nn.functional as F

from gsa import ops
from gsa.ops import _registry
from tests.ops.cases import tensors


@pytest.fixture(autouse=True)
def two_backends(monkeypatch):
    """The rules are tested on the two backends that every installation has."""
    everywhere = {name: _registry._BACKENDS[name] for name in ("tiled", "reference")}
    # As a whole: deleted one by one, the others would be put back in another order.
    monkeypatch.setattr(_registry, "_BACKENDS", everywhere)


@pytest.fixture
def calls(monkeypatch):
    """Names of the backends that run, in order."""
    names = []
    for name, backend in list(_registry._BACKENDS.items()):

        def forward(*arguments, name=name, original=backend.forward):
            names.append(name)
            return original(*arguments)

        spied = _registry.Backend(forward, backend.backward, backend.refusal, backend.summary)
        monkeypatch.setitem(_registry._BACKENDS, name, spied)
    return names


def attend(**options):
    five, window, form = tensors("regular", "square")
    return ops.attend(*five, window, form=form, **options)


def test_argument_before_use_before_environment_before_automatic(calls, monkeypatch):
    attend()
    monkeypatch.setenv("GSA_BACKEND", "reference")
    attend()
    with ops.use("tiled"):
        attend()
        attend(backend="reference")
        with ops.use("reference"):
            attend()
        attend()
    assert calls == ["tiled", "reference", "tiled", "reference", "reference", "tiled"]


def test_choices_of_several_threads_end_in_any_order(calls):
    opened, closed = threading.Event(), threading.Event()

    def other():
        with ops.use("reference"):
            opened.set()
            closed.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    opened.wait(60)
    with ops.use("tiled"):
        closed.set()
        thread.join()
        attend(), attend()
    with ops.use("reference"):
        attend()
    assert ops.explain().startswith("tiled: chosen because it is the fastest")
    assert calls == ["tiled", "tiled", "reference"]


def test_auto_lifts_what_was_chosen_outside_and_by_the_environment(calls, monkeypatch):
    monkeypatch.setenv("GSA_BACKEND", "reference")
    with ops.use("auto"):
        attend()
        assert ops.explain().startswith("tiled: chosen because it is the fastest")
        with ops.use("reference"):
            attend()
            with ops.use("auto"):
                attend()
    attend()
    assert calls == ["tiled", "reference", "tiled", "reference"]


def test_unknown_names_are_refused_everywhere(monkeypatch):
    message = r"must be one of \('tiled', 'reference'\) or 'auto', but got 'cudnn'"
    with pytest.raises(ValueError, match=message):
        attend(backend="cudnn")
    with pytest.raises(ValueError, match=message), ops.use("cudnn"):
        pass
    monkeypatch.setenv("GSA_BACKEND", "cudnn")
    with pytest.raises(ValueError, match=message):
        attend()


def test_a_named_backend_that_cannot_serve_raises_and_the_automatic_choice_goes_on(monkeypatch, calls):
    tiled = _registry._BACKENDS["tiled"]
    refusing = _registry.Backend(tiled.forward, tiled.backward, lambda device, dtype: "only on Sundays", "")
    monkeypatch.setitem(_registry._BACKENDS, "tiled", refusing)
    with pytest.raises(ValueError, match="'tiled' cannot serve cpu, torch.float64: only on Sundays"):
        attend(backend="tiled")
    attend()
    assert calls == ["reference"]
    assert "only on Sundays" in ops.explain()
    refused, automatic, *_ = ops.explain(backend="tiled").splitlines()
    assert refused == (
        "tiled: refused; it was named in the call, but it cannot serve cpu, torch.float32: only on Sundays"
    )
    assert automatic.startswith("reference: would be chosen automatically because it is the fastest backend for cpu")
    with ops.use("tiled"):
        assert ops.explain().startswith("tiled: refused; gsa.ops.use(...) is in force, but it cannot serve cpu")
    with pytest.raises(ValueError, match="but got 'cudnn'"):
        ops.explain(backend="cudnn")


def test_explain_names_choice_and_reason(monkeypatch):
    assert ops.explain().startswith("tiled: chosen because it is the fastest backend for cpu, torch.float32")
    assert "it was named in the call" in ops.explain(torch.rand(1), backend="reference")
    with ops.use("reference"):
        assert ops.explain().startswith("reference: chosen because gsa.ops.use(...) is in force")
    monkeypatch.setenv("GSA_BACKEND", "reference")
    assert "GSA_BACKEND" in ops.explain()


def test_explain_says_who_serves_global_attention(monkeypatch):
    def last(**options):
        *_, line, positional = ops.explain(**options).splitlines()
        assert positional.startswith("  heads that attend by position alone: a convolution")
        assert line.startswith("  global attention with plain products")
        return line.split(": ", 1)[1]

    monkeypatch.setattr("gsa.ops._registry.native.is_built", lambda: False)
    assert last() == last(device="cuda") == "by PyTorch's fused kernels"
    assert last(backend="tiled") == "as above, not by PyTorch's fused kernels: a backend has been named"
    with ops.use("tiled"):
        assert last().endswith("a backend has been named")
    monkeypatch.setattr("gsa.ops._registry.native.is_built", lambda: True)
    assert last() == "as above, not by PyTorch's fused kernels: the native kernels are as fast or faster"
    assert last(device="cuda") == "by PyTorch's fused kernels"


def test_the_choice_is_logged_once(caplog, monkeypatch):
    monkeypatch.setattr(_registry, "_announced", set())
    with caplog.at_level(logging.INFO, logger="gsa.ops"):
        attend()
        attend()
    assert [record.message for record in caplog.records] == [
        "attention runs on the 'tiled' backend: it is the fastest backend for cpu, torch.float64"
    ]


def test_backward_stays_on_the_backend_of_forward(monkeypatch):
    five, window, form = tensors("regular", "square")
    with ops.use("reference"):
        output = ops.attend(*five, window, form=form)

    def never(*arguments):
        raise AssertionError("another backend ran")

    tiled = _registry._BACKENDS["tiled"]
    monkeypatch.setitem(_registry._BACKENDS, "tiled", _registry.Backend(never, never, tiled.refusal, ""))
    output.sum().backward()


def test_use_is_seen_by_compiled_code(calls):
    five, window, form = tensors("regular", "square")
    compiled = torch.compile(lambda *t: ops.attend(*t, window, form=form) * 2, backend="eager", fullgraph=True)
    compiled(*five)
    with ops.use("reference"):
        compiled(*five)
    compiled(*five)
    assert calls == ["tiled", "reference", "tiled"]


@pytest.mark.parametrize("device, width", [("cpu", 10), ("meta", 16)])
def test_global_attention_has_a_width_that_fused_kernels_take(monkeypatch, device, width):
    """On anything but a CPU, multiples of eight; PyTorch would write out all scores for others."""
    widths, ours = [], F.scaled_dot_product_attention

    def noted(*tokens, **options):
        widths.extend(token.shape[-1] for token in tokens)
        return ours(*tokens, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", noted)
    query, key, value = (torch.zeros(1, 2, 1, 3, 3, size, device=device) for size in (10, 10, 7))
    assert ops.attend_everywhere(query, key, value, scale=1.0).shape == (1, 2, 1, 3, 3, 7)
    assert widths == [width] * 3
