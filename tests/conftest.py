import os

if "PYTEST_XDIST_WORKER" in os.environ:  # tests run side by side; threads would wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import gc
from importlib.util import find_spec

import pytest
import torch

ALL_GROUPS = ("Z2", "Z2M", "R2", "R3", "R4", "R8", "R12", "R16", "R2M", "R4M", "R8M")


# What tests need besides torch, lightning, triton and pytest; tests of what is not installed are skipped.
OPTIONAL = (
    "hydra", "omegaconf", "wandb", "torchvision", "h5py", "sklearn", "matplotlib", "PIL", "yaml", "dotenv", "rich",
    "hypothesis", "huggingface_hub", "onnx", "onnxscript", "onnxruntime", "tensorboard", "optuna", "timm",
)  # fmt: skip
MISSING = {name for name in OPTIONAL if find_spec(name) is None}


def pytest_addoption(parser):
    if find_spec("xdist") is None:
        for option in ("--numprocesses", "--dist"):
            parser.addoption(option, help="for pytest-xdist, which is not installed")


def is_missing(error):
    """Whether a test, or what it started, has asked for a package that this machine lacks."""
    return isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in MISSING


class Module(pytest.Module):
    """A file of tests, skipped as a whole where a package that it imports is missing."""

    def _getobj(self):
        try:
            return super()._getobj()
        except self.CollectError as error:
            if is_missing(error.__cause__):
                pytest.skip(f"{error.__cause__.name} is not installed", allow_module_level=True)
            raise


def pytest_collection_finish():
    """What has been imported is not looked through again and again for cycles: a tenth of the time of all tests."""
    gc.freeze()


def pytest_pycollect_makemodule(module_path, parent):
    return Module.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    if call.excinfo is not None and is_missing(call.excinfo.value):
        reason = f"{call.excinfo.value.name} is not installed"
        call.excinfo = pytest.ExceptionInfo.from_exception(pytest.skip.Exception(reason))
    return (yield)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture
def float64():
    """Parameters and inputs made inside are double precision."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def configure(tmp_path):
    """configure("key=value", …) → the composed configuration of a run in tmp_path / "run"."""
    from tests.runs import composed

    return lambda *overrides, folder="run": composed(*overrides, folder=tmp_path / folder)


@pytest.fixture
def small(tmp_path):
    """The same, of a small network and a few steps."""
    from tests.runs import of_few_steps

    return lambda *overrides, folder="run", **options: of_few_steps(*overrides, folder=tmp_path / folder, **options)


@pytest.fixture
def tapes(monkeypatch):
    """The recordings of a test, on the CPU."""
    from tests.tape import Tape

    made = []

    def new():
        made.append(Tape())
        return made[-1]

    monkeypatch.setattr("gsa.training._recordable._ON", ("cuda", "cpu"))
    monkeypatch.setattr("gsa.training._recorded_steps.CudaGraph", new)
    monkeypatch.setattr("gsa.training._fused._ON", ("cuda", "cpu"))
    monkeypatch.setattr("gsa.training._finite_steps._FREE", ())
    monkeypatch.setattr("gsa.ops._by_position.check_centre", lambda window: None)
    return made


@pytest.fixture
def spoil(monkeypatch):
    """spoil(backend, forward=…, backward=…) changes what a backend of the op returns."""
    from dataclasses import replace

    from gsa.ops import _registry

    def planted(name, forward=lambda output: output, backward=lambda gradients: gradients):
        ours = _registry.get(name)
        wrong = replace(
            ours,
            forward=lambda call: forward(ours.forward(call)),
            backward=lambda *arguments: backward(ours.backward(*arguments)),
        )
        monkeypatch.setitem(_registry._BACKENDS, name, wrong)

    return planted
