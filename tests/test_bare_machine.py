"""The suite is collected and passes where nothing but torch, triton, lightning and pytest is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def bare(*arguments):
    command = [sys.executable, "-m", "tests.bare_machine", "-q", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_tests_of_the_op_pass_on_a_bare_machine_that_has_a_gpu():
    files = [f"tests/ops/test_{name}.py" for name in ("backends", "cuda", "dispatch", "gpu_stubbed")]
    done = bare(*files, "-m", "not gpu", "-k", "bitwise or low_precision or wrong or dispatch or stubbed")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "failed" not in done.stdout and " passed" in done.stdout


def test_a_test_that_takes_a_package_or_a_gpu_for_granted_is_seen(tmp_path):
    planted = "import torch\ndef test_planted():\n    assert not torch.cuda.is_available()\n"
    (tmp_path / "test_planted.py").write_text(planted + "def test_other():\n    import hydra\n")
    done = bare(str(tmp_path), "--rootdir", str(tmp_path), "-c", "/dev/null", "-p", "no:cacheprovider")
    assert "2 failed" in done.stdout  # outside the suite, whose own tests that need hydra are left out


@pytest.mark.slow
def test_everything_is_collected_on_a_bare_machine():
    done = bare("--collect-only", "-m", "")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
