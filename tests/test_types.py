"""The public names say what they take and give, and mypy finds them consistent."""

import importlib
import inspect
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gsa

ROOT = Path(gsa.__file__).parent.parent
ROOMS = ("groups", "encodings", "ops", "nn", "models", "symmetry", "saved", "data", "viz")
MYPY = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
# What mypy is told to leave alone for the time being.
SPARED = tuple(name.removesuffix(".*") for o in MYPY["overrides"] if "ignore_errors" in o for name in o["module"])


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
    checked = {name: f for name, f in functions(module) if not f.__module__.startswith(SPARED)}
    assert not {name: missing for name, function in checked.items() if (missing := unannotated(function))}


def test_a_missing_annotation_is_caught():
    def planted(self, x: int, y=1, *args: int):
        pass

    assert unannotated(planted) == ["y", "return"]
    assert "gsa.groups.Group.act" in dict(functions("gsa.groups"))


def test_mypy_is_clean():
    done = mypy()
    assert done.returncode == 0, done.stdout


def test_a_wrong_type_is_caught(tmp_path):
    (tmp_path / "planted.py").write_text("import gsa\n\ngroup: gsa.Group = gsa.group(4)\norder: str = group.order\n")
    told = mypy(str(tmp_path / "planted.py")).stdout
    assert told.count("error:") == 2 and '"int"; expected "str | Group"' in told


def mypy(*files: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mypy", *files], cwd=ROOT, capture_output=True, text=True)
