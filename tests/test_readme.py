"""The README's Python runs as it stands, and its commands name files that exist."""

import re
from pathlib import Path

import pytest

import gsa

ROOT = Path(gsa.__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.S))
def test_python_blocks_run(code, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert "exact" in capsys.readouterr().out


def test_files_it_names_exist():
    names = re.findall(r"\]\((?!http)([^)]+)\)", README) + re.findall(r"python ([a-z/_]+\.py)", README)
    names += re.findall(r"`(benchmarks/results/[^`]+)`", README)
    assert len(names) > 4
    assert not [name for name in names if not (ROOT / name).exists()]


def test_networks_it_names_are_those_of_the_package():
    named = set()
    for data, groups, kind in re.findall(r"`([a-z0-9]+)_\{([\w,]+)\}_(sa|cnn)`", README):
        named |= {f"{data}_{group}_{kind}" for group in groups.split(",")}
    named |= set(re.findall(r"`([a-z0-9]+_vit)`", README))
    assert named == set(gsa.list_models())


def test_nothing_is_left_to_fill_in():
    assert not re.findall(r"^[A-Z_]{6,}$|TODO|FIXME", README, re.M)
