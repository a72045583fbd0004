"""The pages: their Python runs as it stands, their commands name files that exist, their links lead somewhere."""

import re
import runpy
import string
from pathlib import Path

import pytest

import gsa
from gsa.models import PRESETS

ROOT = Path(gsa.__file__).parent.parent
run = runpy.run_path(str(ROOT / "docs" / "pages.py"))["run"]
README = (ROOT / "README.md").read_text()
PAGES = {path: path.read_text() for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])}
PYTHON = {path: re.findall(r"```python\n(.*?)```", text, re.S) for path, text in PAGES.items()}


@pytest.mark.filterwarnings("ignore:.*does not have many workers", "ignore:.*LeafSpec")  # of Lightning, in training.md
@pytest.mark.parametrize("path", [path for path in PYTHON if PYTHON[path]], ids=lambda path: path.name)
def test_python_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(PAGES[path], path.name)
    assert pictures_shown(PAGES[path]) <= {picture.name for picture in tmp_path.glob("*.png")}


def pictures_shown(text: str) -> set[str]:
    """Pictures of a page that its own code has to make."""
    return set(re.findall(r"\]\(pictures/([^)]+)\)", text))


@pytest.mark.parametrize("stated", ["turned by 3: 0.25", "turned by 2: 0.30", "moved by 2: 0.25", "turned by 2:"])
def test_a_page_that_says_what_is_not_so_is_caught(stated):
    page = "```python\nprint(f'turned by 2: {0.251}')\n```\n\n```\n{}\n```\n"
    assert run(page.replace("{}", "turned by 2: 0.25")) == "turned by 2: 0.251\n"
    with pytest.raises(AssertionError, match="page says"):
        run(page.replace("{}", stated))


def test_a_false_assertion_and_a_false_line_of_a_command_are_caught():
    with pytest.raises(AssertionError, match="planted"):
        run("```python\nassert 1 > 2, 'planted'\n```\n")
    with pytest.raises(AssertionError, match="page says"):
        run("```bash\ngsa list\n```\n\n```\nno networks\n```\n")


def test_pictures_of_tutorials_are_small_and_shown():
    folder = ROOT / "docs" / "tutorials"
    shown = set().union(*(pictures_shown(path.read_text()) for path in folder.glob("*.md")))
    assert {picture.name: picture.stat().st_size // 60_000 for picture in (folder / "pictures").iterdir()} == {
        name: 0 for name in shown
    }


def broken_links(path: Path, text: str) -> list[str]:
    """Relative links whose file, or whose heading in it, is not there."""
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if not link.startswith(("http:", "https:"))]
    return [link for link in links if not _leads_somewhere(path, *link.partition("#")[::2])]


def _leads_somewhere(path: Path, file: str, heading: str) -> bool:
    target = (path.parent / file).resolve() if file else path
    return target.exists() and (not heading or heading in _anchors(target.read_text()))


def _anchors(text: str) -> set[str]:
    """What a heading is linked by: its words in lower case, joined by hyphens, without punctuation."""
    lost = str.maketrans("", "", string.punctuation.replace("-", "").replace("_", ""))
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {heading.lower().translate(lost).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    assert not broken_links(path, PAGES[path])


def test_a_link_that_leads_nowhere_is_caught():
    text = "[a](docs/nowhere.md), [b](README.md#no-such-heading), [c](README.md#results), [d](https://there.org/x)"
    assert broken_links(ROOT / "README.md", text) == ["docs/nowhere.md", "README.md#no-such-heading"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_files_that_commands_name_exist(path):
    names = re.findall(r"(?<!```)(?:python|wandb sweep) ([a-z/_]+\.(?:py|yaml))", PAGES[path])
    names += re.findall(r"`(benchmarks/results/[^`]+)`", PAGES[path])
    assert not [name for name in names if not (ROOT / name).exists()]


def expanded(name: str) -> list[str]:
    """rotmnist_{z2,r4}_sa → rotmnist_z2_sa, rotmnist_r4_sa."""
    start, brace, rest = name.partition("{")
    choices, _, end = rest.partition("}")
    return [start + choice + end for choice in choices.split(",")] if brace else [name]


def test_networks_in_the_table_are_those_of_the_package():
    data = "|".join({preset.data for preset in PRESETS.values()})
    named = re.findall(rf"`((?:{data})_[\w{{}},]+)`", PAGES[ROOT / "docs" / "networks.md"])
    assert {name for group in named for name in expanded(group)} == set(gsa.list_models())


def test_the_readme_is_short_and_nothing_is_left_to_fill_in():
    assert len(README.splitlines()) <= 170
    for text in PAGES.values():
        assert not re.findall(r"^[A-Z_]{6,}$|TODO|FIXME", text, re.M)


def test_the_house_is_drawn_from_its_imports():
    house = runpy.run_path(str(ROOT / "docs" / "house.py"))
    page = PAGES[ROOT / "docs" / "design.md"]
    assert "runner --> training" in page
    assert page == house["with_drawing"](page), "python docs/house.py draws it anew"
    assert house["with_drawing"](page.replace("runner --> training", "training --> runner")) == page


def test_an_added_backend_computes_the_op(monkeypatch):
    """The one of docs/adding.md, in a call with everything in it; the others of that page are tried in it."""
    import torch

    from gsa import ops
    from gsa.ops import _registry
    from tests.ops.cases import tensors

    names = {}
    for code in PYTHON[ROOT / "docs" / "adding.md"][-2:]:
        exec(compile(code, "adding.md", "exec"), names)
    monkeypatch.setitem(_registry._BACKENDS, "pixelwise", names["entry"])
    five, window, form = tensors("summed, all counts different", "H≠W")
    options = {"form": form, "dropout": 0.3, "seed": torch.tensor(1)}
    outputs = [ops.attend(*five, window, backend=backend, **options) for backend in ("reference", "pixelwise")]
    cotangent = torch.randn_like(outputs[0])
    for expected, actual in zip(*(torch.autograd.grad(o, five, cotangent) for o in outputs), strict=True):
        torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(*outputs)
