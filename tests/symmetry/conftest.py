"""What the statements measure in these tests, the figures of docs/coverage.md: pytest tests/symmetry --figures."""

import functools
import inspect
from numbers import Number

import pytest
import torch

import gsa
from gsa.symmetry import statements


def pytest_addoption(parser):
    parser.addoption("--figures", action="store_true", help="print what every statement measures")


@pytest.fixture(autouse=True)
def _figures(request, monkeypatch, record_property):
    if not request.config.getoption("--figures", False):
        return
    for name in statements.__all__:
        if inspect.isfunction(function := getattr(statements, name)):
            monkeypatch.setattr(statements, name, told(function, record_property))
    monkeypatch.setattr(gsa.symmetry, "relative_error", told(gsa.symmetry.relative_error, record_property))


def told(function, record):
    """The function, which has its figures recorded in the order of its calls."""

    @functools.wraps(function)
    def measured(*arguments, **keywords):
        found = function(*arguments, **keywords)
        if (text := figures(found)) is not None:
            record(function.__name__, text)
        return found

    return measured


def figures(found):
    """Numbers by their names; None of anything else."""
    if isinstance(found, dict) and all(figures(value) for value in found.values()):
        return ", ".join(f"{name}: {figures(value)}" for name, value in found.items())
    if isinstance(found, Number) or (isinstance(found, torch.Tensor) and found.ndim == 0):
        return f"{float(found):.2g}"
    return None


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--figures", False):
        for report in terminalreporter.getreports("passed"):
            for name, text in report.user_properties if report.when == "call" else ():
                terminalreporter.write_line(f"{report.nodeid.rpartition('/')[2]} {name} {text}")
