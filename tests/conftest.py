import os

if "PYTEST_XDIST_WORKER" in os.environ:  # tests run side by side; threads would wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

ALL_GROUPS = ("Z2", "Z2M", "R2", "R3", "R4", "R8", "R12", "R16", "R2M", "R4M", "R8M")


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
def small(configure):
    """The same, of a small network and a few steps."""
    from tests.runs import SMALL

    def of_few_steps(*overrides, batches=4, **options):
        limits = [f"trainer.limit_{part}_batches={batches}" for part in ("train", "val", "test")]
        return configure(*SMALL, *limits, "trainer.max_epochs=2", *overrides, **options)

    return of_few_steps
