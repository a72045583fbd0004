"""Run the Python of pages from top to bottom, and hold what it prints to what they say:

    python docs/pages.py docs/tutorials/*.md

Blocks of a page share their names. A block without a language right after one of Python, or after a `gsa` command, is
what that prints: words and whole numbers as they stand, other numbers within a tenth, and what is below 1e-9 is
rounding. "```python mine.py" is written to that file as well. All runs in a folder that is thrown away; pictures saved
in it are copied to the folder pictures beside the page.
"""

import contextlib
import io
import math
import re
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["run"]

_BLOCK = re.compile(r"^```(python|bash) ?([\w.]*)\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.M | re.S)
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[+-]\d+)?)")


def run(text: str, name: str = "page") -> str:
    """Run the blocks of a page in the working directory; returns all that they print.

    Raises:
        AssertionError: a block that prints something else than the page says.
    """
    names: dict = {"__name__": "page"}
    printed = ""
    for language, file, code, stated in _BLOCK.findall(text):
        if language == "bash" and not (stated and code.startswith("gsa ")):
            continue
        if file:
            Path(file).write_text(code)
        with contextlib.redirect_stdout(io.StringIO()) as caught:
            _commands(code) if language == "bash" else exec(compile(code, name, "exec"), names)
        found = caught.getvalue()
        assert not stated or _same(stated, found), f"{name} says\n{stated}but this is printed:\n{found}"
        printed += found
    return printed


def _commands(code: str) -> None:
    """As in processes of their own, which leave the numbers that Python draws as they are."""
    import torch

    from gsa.cli import main

    with torch.random.fork_rng([]):
        for line in code.splitlines():
            main(shlex.split(line, comments=True)[1:])


def _same(stated: str, printed: str) -> bool:
    one, other = (_NUMBER.split(" ".join(text.split())) for text in (stated, printed))
    return len(one) == len(other) and all(map(_alike, one, other))


def _alike(one: str, other: str) -> bool:
    if one == other or not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)) or one.isdecimal():
        return one == other
    return math.isclose(float(one), float(other), rel_tol=0.1, abs_tol=1e-9)


if __name__ == "__main__":
    for page in [Path(argument).resolve() for argument in sys.argv[1:]]:
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            run(page.read_text(), page.name)
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, page.parent / "pictures")
        print(f"{page.name}: {time.process_time() - start:.1f} s of processor time, imports included")
