"""From a folder of pictures to a network that knows them, with one command and nothing more."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gsa
from tests.cells import write_cells

TRAIN = Path(gsa.__file__).parent.parent / "train.py"


@pytest.mark.slow
def test_a_folder_of_pictures_becomes_a_network_that_knows_them(tmp_path):
    write_cells(tmp_path / "cells")
    subprocess.run(
        [sys.executable, TRAIN, "data=imagefolder", f"data.root={tmp_path / 'cells'}"], cwd=tmp_path, check=True
    )
    seconds = os.times().children_user + os.times().children_system  # of this machine's cores together
    (file,) = tmp_path.glob("outputs/imagefolder/imagefolder_gsa/*/report.json")
    report = json.loads(file.read_text())
    assert report["test_accuracy"] >= 0.9 and seconds <= 2 * 5 * 60, (report["test_accuracy"], seconds)
