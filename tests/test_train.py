"""The main job, from the command line."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import gsa

ROOT = Path(gsa.__file__).parent.parent


def run(*arguments):
    command = [sys.executable, str(ROOT / "train.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout


def rows(output):
    """network → (test accuracy in %, errors at 90°, 180°, 270°)."""
    found = {}
    for line in output.splitlines():
        cells = [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]
        if len(cells) == 7 and cells[0].startswith("digits"):
            found[cells[0]] = (float(cells[3].removesuffix("%")), [float(e) for e in cells[4:]])
    return found


def test_one_epoch_trains_measures_and_reports():
    result = rows(run("digits_z2_sa", "--epochs", "1"))
    accuracy, errors = result["digits_z2_sa"]
    assert 5 < accuracy < 100 and min(errors) > 1e-2  # a plain network is not invariant


@pytest.mark.slow
def test_the_equivariant_network_learns_and_beats_its_plain_twin():
    result = rows(run())
    (equivariant, errors), (plain, _) = result["digits_r4_sa"], result["digits_z2_sa"]
    assert equivariant >= 80 and equivariant > plain and max(errors) <= 1e-5
