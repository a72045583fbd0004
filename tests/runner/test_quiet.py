"""What a run says of warnings."""

import logging
import sys
import warnings

import pytest
from PIL import Image

from gsa.runner._quiet import quiet


@pytest.fixture
def shown(monkeypatch, capsys):
    """What is printed of warnings, which pytest would keep."""
    monkeypatch.setattr(warnings, "showwarning", lambda *given: sys.stderr.write(warnings.formatwarning(*given[:4])))
    warnings.resetwarnings()
    return lambda: capsys.readouterr().err


def test_a_warning_is_a_line_without_the_program(shown):
    with quiet():
        warnings.warn("a file is dark", stacklevel=1)
    assert shown() == "warning: a file is dark\n"
    warnings.warn("a file is dark", stacklevel=1)
    assert "test_quiet.py" in shown()  # as before


def test_of_large_pictures_our_own_limit_is_told_alone(shown):
    """Planted: without it Pillow warns."""
    for inside in (True, False):
        with quiet() if inside else warnings.catch_warnings():
            Image._decompression_bomb_check((9_500, 9_500))
        assert bool(shown()) is not inside


def test_what_lightning_logs_is_said_once(monkeypatch, capsys):
    """Hydra's handler prints it, and Lightning's own, of which two loggers may have one."""
    for name in ("", "lightning", "lightning.pytorch"):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [logging.StreamHandler()])
    monkeypatch.setattr(logging.getLogger("lightning.pytorch"), "propagate", True)
    for inside in (True, False):
        with quiet() if inside else warnings.catch_warnings():
            logging.getLogger("lightning.pytorch.utilities.rank_zero").warning("restored")
        assert capsys.readouterr().err.count("restored") == (1 if inside else 3)
