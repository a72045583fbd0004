"""The API reference is built without a warning; what docstrings and pages call gsa.… is there."""

import ast
import pkgutil
import re
import runpy
import sys
from pathlib import Path

import numpy
import pytest
from PIL import Image

import gsa

GSA = Path(gsa.__file__).parent
ROOT = GSA.parent
PAGES = {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "CHANGELOG.md"}  # which tells of what was
GALLERY = runpy.run_path(str(ROOT / "docs" / "gallery.py"))["GALLERY"]
REFERENCE = runpy.run_path(str(ROOT / "docs" / "reference.py"))


def test_a_page_of_the_reference_holds_what_the_module_names(tmp_path):
    REFERENCE["build"](tmp_path, "gsa.groups")
    page = (tmp_path / "gsa" / "groups.html").read_text()
    assert all(f'id="{name}"' in page for name in gsa.groups.__all__)


def test_a_warning_fails_the_reference(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "planted.py").write_text("def f(x: 'Missing') -> None:\n    pass\n")
    with pytest.raises(UserWarning, match="Missing"):
        REFERENCE["build"](tmp_path / "pages", "planted")
    sys.modules.pop("planted")


@pytest.mark.slow
def test_every_module_has_a_page(tmp_path):
    modules = REFERENCE["public_modules"]()
    assert {"gsa", "gsa.nn", "gsa.data"} < set(modules)
    REFERENCE["build"](tmp_path, *modules)
    assert all((tmp_path / f"{module.replace('.', '/')}.html").exists() for module in modules)


def missing(text: str) -> set[str]:
    """Names gsa.… in a text that lead nowhere; but for configurations, which may be of what is still to be written."""
    text = re.sub(r"```yaml\n.*?```", "", text, flags=re.S)
    names = set(re.findall(r"\bgsa(?:\.[A-Za-z_]\w*)+", text))
    return {name for name in names if not _is_there(name)}


def _is_there(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def docstrings(path: Path) -> str:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    nodes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, documented))
    return "\n".join(ast.get_docstring(node) or "" for node in nodes)


def test_names_in_pages_and_docstrings_are_there():
    texts = {path: path.read_text() for path in PAGES} | {path: docstrings(path) for path in GSA.rglob("*.py")}
    assert not {str(path): names for path, text in texts.items() if (names := missing(text))}


def test_a_name_that_leads_nowhere_is_caught():
    assert missing("see `gsa.nn.NoSuchLayer` and `gsa.nn.GroupNorm`, `gsa.no_such_room.x`") >= {
        "gsa.nn.NoSuchLayer",
        "gsa.no_such_room.x",
    }


def unknown_tests(text: str) -> set[str]:
    """Tests named in a text, as tests/….py::test_…, that are not there."""
    named = set(re.findall(r"tests/[\w/]+\.py::test_\w+", text))
    assert named
    return {name for name in named if not _is_a_test(*name.split("::"))}


def _is_a_test(file: str, name: str) -> bool:
    return (ROOT / file).is_file() and f"\ndef {name}(" in (ROOT / file).read_text()


def test_every_promise_has_its_test():
    assert not unknown_tests((ROOT / "docs" / "reliability.md").read_text())
    assert unknown_tests("tests/test_docs.py::test_planted and tests/planted.py::test_x") == {
        "tests/test_docs.py::test_planted", "tests/planted.py::test_x"
    }  # fmt: skip


def test_the_gallery_is_there_in_one_size():
    for name in GALLERY:
        picture = ROOT / "docs" / "gallery" / f"{name}.png"
        assert picture.stat().st_size <= 100_000
        with Image.open(picture) as opened:
            assert opened.size == (540, 540)


def test_a_map_of_the_gallery_keeps_its_colour_as_it_turns():
    axes = GALLERY["turn"]().axes  # a row for the input, and one for each pose
    frame = {axis.spines["top"].get_edgecolor(): axis.images[0].get_array() for axis in axes[4::4]}
    assert len(frame) == 4
    for turn in range(4):
        for axis in axes[4 + turn :: 4]:
            expected = numpy.rot90(frame[axis.spines["top"].get_edgecolor()], turn)
            numpy.testing.assert_allclose(axis.images[0].get_array(), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", GALLERY)
def test_every_picture_of_the_gallery_is_drawn(name, tmp_path):
    GALLERY[name]().savefig(tmp_path / "picture.png")
