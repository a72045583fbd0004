"""An export by the command, in either way of saying what, and as a module."""

import subprocess
import sys

import pytest

import gsa
from gsa import cli


@pytest.mark.parametrize("said", [["digits_gsa"], ["--checkpoint", "digits_gsa"]])
def test_what_is_exported_is_said_in_either_way(tmp_path, said):
    assert cli.main(["export", *said, "--to", str(tmp_path)]) == 0
    assert gsa.load(tmp_path).num_classes == 10 and cli.main(["check", str(tmp_path)]) == 0


@pytest.mark.parametrize("said", [[], ["digits_gsa", "--checkpoint", "digits_gsa"]])
def test_what_is_exported_is_said_once(tmp_path, said, capsys):
    assert cli.main(["export", *said, "--to", str(tmp_path)]) == 2
    assert "say what to export once" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "gsa", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith(f"gsa {gsa.__version__}")
