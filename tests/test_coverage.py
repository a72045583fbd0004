"""The table of statements: every function and test that it names is there, and no cell is empty."""

import pkgutil
import re
from pathlib import Path

import gsa
from tests.test_docs import unknown_tests

ROOT = Path(gsa.__file__).parent.parent
PAGE = (ROOT / "docs" / "coverage.md").read_text()
HEADER = ["statement", "function or command", "test", "measured figure"]


def rows(page):
    """Cells of the tables' rows, without headers and rules."""
    lines = [line for line in page.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if row != HEADER and set("".join(row)) != {"-"}]


def is_there(name):
    """Whether a function, or the script of a command, exists."""
    if " " in name:
        return (ROOT / name.removeprefix("python ").split()[0]).is_file()
    place = name if name.startswith(("gsa.", "torch.")) else f"gsa.symmetry.statements.{name}"
    try:
        pkgutil.resolve_name(place)
    except (AttributeError, ImportError):
        return False
    return True


def faults(page):
    """What is wrong with its rows, in words."""
    found = []
    for row in rows(page):
        if len(row) != len(HEADER) or "" in row:
            found.append(f"empty: {row}")
            continue
        _, functions, test, _ = row
        named = re.findall(r"`([^`]+)`", functions)
        found += [f"no function: {row}"] * (not named) + [f"missing: {name}" for name in named if not is_there(name)]
        found += [f"missing: {name}" for name in unknown_tests(test)] if "::" in test else [f"no test: {row}"]
    return found


def test_every_statement_has_its_function_test_and_figure():
    assert len(rows(PAGE)) > 60
    assert not faults(PAGE)


def test_every_function_has_its_statement():
    not_statements = {"ENCODINGS", "OverTokens", "Shuffle", "head_order"}
    assert {name for name in gsa.symmetry.statements.__all__ if f"`{name}`" not in PAGE} == not_statements


def test_planted_rows_are_seen():
    good = "tests/test_coverage.py::test_planted_rows_are_seen"
    planted = {
        "| s | `twin` | `" + good + "` | 0 |": [],
        "| s | `twin` |  | 0 |": ["empty"],
        "| s | `no_such_function` | `" + good + "` | 0 |": ["missing"],
        "| s | `python benchmarks/no_such_script.py --all` | `" + good + "` | 0 |": ["missing"],
        "| s | in words | `" + good + "` | 0 |": ["no function"],
        "| s | `twin` | in words | 0 |": ["no test"],
        "| s | `twin` | `tests/test_coverage.py::test_planted` | 0 |": ["missing"],
    }
    for row, expected in planted.items():
        assert [fault.split(":")[0] for fault in faults(row)] == expected
