"""The house: imports point one way, files and functions stay small, `import gsa` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gsa
from gsa import data, explore, report, runner, saved, training, viz

ROOT = Path(gsa.__file__).parent.parent
PACKAGE = ROOT / "gsa"
FILES = sorted(PACKAGE.rglob("*.py"))

# Each part may import from these parts of the package, and from itself.
ARROWS = {
    "_checks": set(),
    "_handled": set(),
    "_hooked": set(),
    "_compiled": set(),
    "_extras": set(),
    "_kept": {"files"},
    "_limits": set(),
    "_memory": set(),
    "_nearest": set(),
    "_origin": set(),
    "_remembered": {"groups"},
    "_streams": set(),
    "_tables": set(),
    "_with_torch": {"ops"},
    "_version": set(),
    "__main__": {"cli"},
    "files": set(),
    "groups": {"_checks"},
    "ops": set(),
    "data": {"_extras", "_limits", "files", "groups"},
    "encodings": {"_checks", "_hooked", "_remembered", "_tables", "groups"},
    "symmetry": {"_compiled", "groups", "encodings", "nn"},  # layers: its statements only, see below
    "nn": {"_checks", "_compiled", "_hooked", "_remembered", "_tables", "groups", "encodings", "ops"},
    "models": {"_version", "_checks", "_extras", "_nearest", "_remembered", "files", "groups", "encodings", "nn"},
    "viz": {"_extras", "groups", "symmetry"},
    "explore": {"_extras", "groups", "encodings", "models", "nn", "saved", "symmetry", "files"},
    "saved": {"_version", "_extras", "_remembered", "_nearest", "files", "models", "ops"},
    "training": {"_checks", "_extras", "_handled", "_remembered", "files", "saved"},  # networks and data are injected
    "report": {"_version", "_extras", "_origin", "files", "groups", "ops", "nn", "symmetry", "viz"},
    "runner": {
        "_extras",
        "_handled",
        "_kept",
        "_limits",
        "_memory",
        "_nearest",
        "_origin",
        "_remembered",
        "_streams",
        "files",
    }
    | {"data", "models", "saved", "training", "report"},
    "published": {"groups", "models", "nn"},
    "hub": {"_version", "_extras", "files", "groups", "models", "saved"},
    "cli": {
        "__init__",
        "_extras",
        "_handled",
        "_kept",
        "_memory",
        "_nearest",
        "_streams",
        "files",
        "groups",
        "models",
        "saved",
        "symmetry",
    }
    | {"explore", "report", "runner", "viz"},
    "__init__": {"_version", "_with_torch", "published", "groups", "encodings", "ops", "nn", "models", "symmetry"}
    | {"data", "runner", "saved", "training", "viz"},
}


def imported_parts(tree: ast.AST) -> set[str]:
    """Parts of gsa that a file imports, at its top or inside functions."""
    parts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"gsa.{alias.name}" for alias in node.names] if node.module == "gsa" else [node.module]
        else:
            continue
        parts |= {name.split(".")[1] for name in names if name.startswith("gsa.")}
        parts |= {"__init__" for name in names if name == "gsa"}
    return parts


def imported_modules(tree: ast.AST) -> set[str]:
    """Full names of everything imported, and of the modules it is imported from."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def offences(path: Path, tree: ast.AST) -> set[str]:
    part = part_of(path)
    return imported_parts(tree) - ARROWS[part] - {part}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path):
    assert not offences(path, ast.parse(path.read_text()))


def test_every_arrow_is_used():
    """An allowance that nobody needs would let an arrow in unseen."""
    used = {part: {"ops"} if part == "_with_torch" else set() for part in ARROWS}  # which names it in a text
    for path in FILES:
        used[part_of(path)] |= imported_parts(ast.parse(path.read_text())) - {part_of(path)}
    assert used == ARROWS


def test_what_judges_the_layers_does_not_know_them():
    files = sorted((PACKAGE / "symmetry").glob("*.py"))
    assert files and all(
        imported_parts(ast.parse(path.read_text())) <= {"_compiled", "symmetry", "groups"} for path in files
    )
    loads = "import sys, gsa.symmetry; {}; raise SystemExit('gsa.nn' in sys.modules)"
    for use, knows in (("gsa.symmetry.relative_error", 0), ("gsa.symmetry.statements", 1)):
        assert subprocess.run([sys.executable, "-c", loads.format(use)]).returncode == knows


def test_an_import_against_the_arrows_is_caught():
    for line in ("import gsa", "import gsa.models", "from gsa import nn", "def f():\n    from gsa.nn import norm"):
        assert offences(PACKAGE / "groups" / "_planted.py", ast.parse(line))


IMPLEMENTATIONS = PACKAGE / "ops" / "impl"


def foreign_rooms(path: Path, tree: ast.AST) -> set[str]:
    """Other implementations of the op that a file of one of them imports."""
    rooms = {room.stem for room in IMPLEMENTATIONS.glob("[!_]*")}
    rooms.discard(path.relative_to(IMPLEMENTATIONS).parts[0].removesuffix(".py"))
    inside = [name.split(".")[3] for name in imported_modules(tree) if name.startswith("gsa.ops.impl.")]
    return rooms & set(inside)


def test_implementations_of_the_op_do_not_import_one_another():
    for path in IMPLEMENTATIONS.rglob("*.py"):
        assert not foreign_rooms(path, ast.parse(path.read_text()))


def test_an_implementation_that_imports_another_is_caught():
    for line in (
        "import gsa.ops.impl.tiled",
        "from gsa.ops.impl import tiled",
        "from gsa.ops.impl.tiled import forward",
        "from gsa.ops.impl.tiled._bands import Band",
    ):
        for place in ("reference.py", "_layout.py", "native/_planted.py"):
            assert foreign_rooms(IMPLEMENTATIONS / place, ast.parse(line))
        assert not foreign_rooms(IMPLEMENTATIONS / "tiled" / "_planted.py", ast.parse(line))


def test_files_of_tests_stay_small_and_say_what_they_test():
    files = [*(ROOT / "tests").rglob("test_*.py")]
    assert len(files) > 100
    for path in files:
        source = path.read_text()
        assert len(source.splitlines()) <= 300 and ast.get_docstring(ast.parse(source)), path


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_small_and_documented(path):
    source = path.read_text()
    assert len(source.splitlines()) <= 300
    tree = ast.parse(source)
    assert ast.get_docstring(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if isinstance(node, ast.FunctionDef):
                body = node.end_lineno - node.body[0].lineno + 1
                if ast.get_docstring(node):
                    body -= node.body[0].end_lineno - node.body[0].lineno + 1
                is_kernel = any(ast.unparse(decorator) == "triton.jit" for decorator in node.decorator_list)
                assert body <= (120 if is_kernel else 60), node.name
            is_signature = any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)
            public = not node.name.startswith("_") and node in tree.body and not is_signature
            assert not public or ast.get_docstring(node), node.name


def test_public_names_exist_and_are_documented():
    rooms = (gsa.groups, gsa.encodings, gsa.ops, gsa.nn, gsa.models, gsa.symmetry, gsa.symmetry.statements)
    for module in (gsa, *rooms, data, explore, saved, training, report, runner, viz):
        for name in module.__all__:
            assert getattr(module, name).__doc__, f"{module.__name__}.{name}"


def test_the_entry_is_thin():
    assert len((ROOT / "train.py").read_text().splitlines()) < 20


HEAVY = {"lightning", "hydra", "wandb", "triton", "matplotlib", "sklearn", "torchvision", "h5py"}


def imported_by(code: str) -> set[str]:
    """Heavy packages that are there once some code has run in a process of its own."""
    code = f"import sys\n{code}\nprint(*(m for m in {sorted(HEAVY)} if m in sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_gsa_is_light():
    assert not imported_by("import gsa")


def test_loading_a_run_needs_no_trainer():
    run, export = (str(ROOT / "tests" / "golden" / "frozen" / kind) for kind in ("run", "export"))
    assert not imported_by(f"import gsa; gsa.load({run!r}); gsa.load({export!r})")


def test_a_heavy_import_is_noticed():
    assert "matplotlib" in imported_by("import gsa, matplotlib.figure")


def test_training_and_reports_know_no_hydra():
    files = [path for part in ("saved", "training", "report") for path in (PACKAGE / part).glob("*.py")]
    used = {
        (path.name, name.partition(".")[0]) for path in files for name in imported_modules(ast.parse(path.read_text()))
    }
    assert not {(file, name) for file, name in used if name == "hydra"}
    assert not {(file, name) for file, name in used if name == "lightning" and (PACKAGE / "saved" / file).exists()}


def test_the_changelog_knows_this_version():
    assert f"## {gsa.__version__}" in (ROOT / "CHANGELOG.md").read_text()
