"""Ctrl-C ends a command with a line."""

import os
import subprocess
import sys

import pytest

from gsa import cli


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("place", ["gsa.cli._list.run", "gsa.cli.import_module", "gsa.cli._parser"])
def test_a_command_that_is_stopped_says_so(place, monkeypatch, capsys):
    """Planted: at its work, while it imports, and before."""
    monkeypatch.setattr(place, interrupt)
    assert cli.main(["list"]) == 130
    assert capsys.readouterr().err == "stopped\n"


def test_a_module_that_passes_over_it_does_not_go_on():
    """Planted: an import that catches everything, as those of PyTorch do."""
    planted = """
import os, signal
from gsa import cli
def swallow(name):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        pass
cli.import_module = swallow
raise SystemExit(cli.main(["list"]))
"""
    done = subprocess.run([sys.executable, "-c", planted], capture_output=True, text=True, env=os.environ)
    assert (done.returncode, done.stderr) == (130, "stopped\n")
