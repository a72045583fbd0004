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
