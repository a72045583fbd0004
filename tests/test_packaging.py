"""What is packed: the dependencies are those that are imported, the citation is of this version, the wheel works."""

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import gsa

ROOT = Path(gsa.__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
INSTALLED = importlib.metadata.packages_distributions()
BROUGHT = {
    "triton",  # by torch, where it is built for CUDA; the kernels in it are offered only there
    "optuna",  # by Hydra's sweeper, which searches with it
}
NAMED = {"rich"}  # imported by Lightning, for the progress bar that configs/callbacks names


def distribution_of(module: str) -> str:
    """The normal form of the name under which a module is installed; its own name where it is not."""
    names = INSTALLED.get(module, [module])
    return re.sub(r"[-_.]+", "-", names[0]).lower()


def imported(tree: ast.AST) -> set[str]:
    """Distributions of everything imported, at the top of a file or in its functions, but for Python's own."""
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module.split(".")[0])
    return {distribution_of(module) for module in modules - sys.stdlib_module_names - {"gsa"}}


def declared(requirements: list[str]) -> set[str]:
    return {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", line)[0]).lower() for line in requirements}


IMPORTED = set().union(*(imported(ast.parse(path.read_text())) for path in (ROOT / "gsa").rglob("*.py")))
DEPENDENCIES = declared(PROJECT["dependencies"])
EXTRAS = set().union(*map(declared, PROJECT["optional-dependencies"].values()))


def test_everything_imported_is_declared():
    assert not IMPORTED - DEPENDENCIES - EXTRAS - BROUGHT


def test_every_dependency_is_imported():
    assert not DEPENDENCIES - IMPORTED - NAMED


def test_an_import_that_is_not_declared_is_caught():
    assert imported(ast.parse("import os, yaml\ndef f():\n    from PIL import Image")) == {"pyyaml", "pillow"}
    assert imported(ast.parse("import not_declared.at_all")) - DEPENDENCIES - EXTRAS - BROUGHT


def test_the_citation_is_of_this_version_and_licence():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == gsa.__version__
    assert citation["license"] == PROJECT["license"]


def test_an_editable_installation_is_a_path_that_type_checkers_follow():
    """And no hook of Python's imports, which they and editors cannot read; `gsa.configs` is a link for that reason."""
    installed = importlib.metadata.distributions(name="gsa-nets")  # several, where one is built beside the sources
    files = [each.locate_file(file) for each in installed for file in each.files or () if "__editable__" in str(file)]
    if not files:
        pytest.skip("gsa is not installed so")
    assert [Path(str(file)).read_text().strip() for file in files] == [str(ROOT)]


@pytest.mark.slow
def test_the_wheel_brings_kernels_that_need_no_compiler(tmp_path):
    if shutil.which("c++") is None:
        pytest.skip("the wheel is built with a C++ compiler")
    for name in (*PROJECT["license-files"], PROJECT["readme"], "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("gsa", "configs"):
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=ignored)
    run([sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--wheel-dir", "wheels"], tmp_path)
    run([sys.executable, "-m", "venv", "fresh"], tmp_path)
    fresh = tmp_path / "fresh" / "bin"
    (wheel,) = (tmp_path / "wheels").iterdir()
    run([fresh / "python", "-m", "pip", "install", "--no-deps", wheel], tmp_path)
    # The dependencies are those of this environment; of the package itself, only what was installed is seen.
    (packages,) = tmp_path.glob("fresh/lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    assert (packages / "gsa" / "py.typed").exists()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    facts = "import gsa; print(gsa.__file__, gsa.ops.backends())"
    told = run([fresh / "python", "-c", facts], elsewhere, {"PATH": str(fresh)})
    assert str(packages) in told and "'native'" in told
    assert "digits_r4_sa" in run([fresh / "gsa", "list"], elsewhere, {"PATH": str(fresh)})
    assert "model: " in run([fresh / "gsa-train", "--help"], elsewhere, {"PATH": str(fresh)})


def run(command: list[str | Path], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
