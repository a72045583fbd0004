"""Commands that are forked are as those of a process of their own."""

import subprocess
import sys

import pytest

from tests.forks import python

CODE = """
import os, sys
print(__name__, sys.argv, sys.path[0], os.getcwd(), os.environ.get("TOLD"), sys.stdin.read(), sys.stdout.isatty())
print("of the other stream", file=sys.stderr)
raise SystemExit(3)
"""


@pytest.mark.parametrize("is_script", [False, True])
def test_they_say_and_return_what_a_process_does(tmp_path, is_script):
    (tmp_path / "script.py").write_text(CODE)
    words = [tmp_path / "script.py" if is_script else "-c", *([] if is_script else [CODE]), "a", "b c"]
    env = {"TOLD": "yes"}
    alone = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)  # fmt: skip
    forked = python(*words, cwd=tmp_path, env=env)
    assert (forked.returncode, forked.stdout, forked.stderr) == (3, alone.stdout, alone.stderr)


def test_one_that_is_killed_or_takes_too_long_is_told_of():
    assert python("-c", "import os; os.kill(os.getpid(), 9)").returncode == -9
    with pytest.raises(subprocess.TimeoutExpired):
        python("-c", "import time; time.sleep(60)", timeout=0.2)
