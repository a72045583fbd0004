"""The public names say what they take and give, and mypy finds them consistent."""

import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gsa

ROOT = Path(gsa.__file__).parent.parent
ROOMS = (
    "groups", "encodings", "ops", "nn", "models", "symmetry", "saved", "data", "viz", "training", "report", "runner",
)  # fmt: skip

IMPORTER = """
from typing import assert_type

import torch
from torch import Tensor

import gsa

images = torch.rand(1, 3, 8, 8)
group = gsa.group("R4")
lifting = gsa.nn.LiftingSelfAttention(group, in_channels=3, out_channels=16)
layer = gsa.nn.GroupSelfAttention(group, in_channels=16, out_channels=16)
assert_type(layer(lifting(images)), Tensor)
assert_type(lifting.group, gsa.Group)
network = gsa.create_model("rotmnist_r4_sa", in_channels=3)
assert_type(network, gsa.models.Network)
assert_type(network.group, gsa.Group)
assert_type(network(images), Tensor)
assert_type(gsa.load("run")(images), Tensor)
chosen: bool = input() == "features"
assert_type(gsa.create_model("rotmnist_r4_sa", features_only=chosen), gsa.models.Network | gsa.models.Features)
assert_type(gsa.nn.replace_convolutions(torch.nn.Sequential(), "R4"), torch.nn.Sequential)
assert_type(gsa.symmetry.equivariance_error(network, images, group), dict[int, float])
"""


def functions(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions of a module, and the public methods that its classes define themselves."""
    for name in importlib.import_module(module).__all__:
        found = getattr(importlib.import_module(module), name)
        if inspect.isclass(found):
            for key, value in vars(found).items():
                value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                is_ours = inspect.isfunction(value) and value.__module__.startswith("gsa.")
                if is_ours and (key == "__init__" or not key.startswith("_")):
                    yield f"{module}.{name}.{key}", value
        elif inspect.isfunction(found):
            yield f"{module}.{name}", found


def unannotated(function: Callable[..., Any]) -> list[str]:
    """Parameters without a type, and "return" where nothing is said of the result."""
    named = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    return [name for name in (*named, "return") if name not in function.__annotations__]


@pytest.mark.parametrize("module", ["gsa", *(f"gsa.{room}" for room in ROOMS)])
def test_public_functions_are_annotated(module):
    assert not {name: missing for name, function in functions(module) if (missing := unannotated(function))}


def test_a_missing_annotation_is_caught():
    def planted(self, x: int, y=1, *args: int):
        pass

    assert unannotated(planted) == ["y", "return"]
    assert "gsa.groups.Group.act" in dict(functions("gsa.groups"))


def test_mypy_is_clean():
    done = mypy()
    assert done.returncode == 0, done.stdout


def test_an_importer_is_told_the_types(tmp_path):
    (tmp_path / "importer.py").write_text(IMPORTER)
    done = mypy(str(tmp_path / "importer.py"))
    assert done.returncode == 0, done.stdout


def test_a_wrong_type_is_caught(tmp_path):
    (tmp_path / "planted.py").write_text("import gsa\n\ngroup: gsa.Group = gsa.group(4)\norder: str = group.order\n")
    told = mypy(str(tmp_path / "planted.py")).stdout
    assert told.count("error:") == 2 and '"int"; expected "str | Group"' in told


def mypy(*files: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mypy", *files], cwd=ROOT, capture_output=True, text=True)
