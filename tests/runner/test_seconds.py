"""Commands answer without what they do not need: the seconds of a command are those of what it imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gsa
from gsa._kept import kept

ROOT = Path(gsa.__file__).parent.parent
SLOW = {"torch", "torchvision", "lightning", "matplotlib", "wandb"}
GSA, TRAIN = "from gsa.cli import main", "from gsa.runner import main"
WITH_IMPORTS = f"""
import sys
sys.argv[0] = "command"
try:
    exec(sys.argv.pop(1)); main()
finally:
    print("imported", *sorted({SLOW!r} & set(sys.modules)), file=sys.stderr)
"""


def imported(folder, command, *words, **environment):
    """What a command imports of what is slow, and everything it says, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", WITH_IMPORTS, command, *words], cwd=folder, capture_output=True, text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(folder), "PYTHONPATH": str(ROOT)} | environment,
    )  # fmt: skip
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("imported"))
    return set(line.split()[1:]), done.stdout + done.stderr


@pytest.mark.parametrize(("word", "said"), [("--help", "predict"), ("--version", f"gsa {gsa.__version__}")])
def test_the_command_explains_itself_without_torch(tmp_path, word, said):
    found, text = imported(tmp_path, GSA, word)
    assert said in text and not found


def test_refusals_and_completions_need_no_torch_the_second_time_nor_lightning_those_of_a_network(tmp_path):
    found, _ = imported(tmp_path, TRAIN, "+data.batchsize=7")
    assert found >= {"torch", "lightning"}  # planted: neither presets nor signatures are kept yet
    for word, said in {
        "optimizer.lr=-1": "optimizer.lr must not be negative",
        "+data.batchsize=7": "the nearest is 'batch_size'",
        "ckpt_path=nowhere.ckpt": "there is no checkpoint at nowhere.ckpt",
        "--help": "digits_r4_sa",
    }.items():
        found, text = imported(tmp_path, TRAIN, word)
        assert said in text and not found, word
    line = {"COMP_LINE": "command model=digits_r", "COMP_POINT": "22"}
    found, text = imported(tmp_path, TRAIN, "--shell-completion", "query=bash", **line)
    assert "model=digits_r4_sa" in text and not found
    found, text = imported(tmp_path, TRAIN, "model.neighbourhood=4")
    assert "neighbourhood must be an odd number" in text and found == {"torch"}


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"of": 1, "made": {}}', b"\xff", b"[" * 100_000])
def test_what_was_kept_is_what_was_made_of_these_sources(tmp_path, monkeypatch, content):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "gsa").mkdir()
    if content is not None:
        (tmp_path / "gsa" / "name.json").write_bytes(content)
    assert gsa.models and kept("name", lambda: {"made": 1}, "gsa.models") == {
        "made": 1
    }  # gsa.models is imported: neither read nor written
    assert (tmp_path / "gsa" / "name.json").exists() is (content is not None)
    made = [kept("name", lambda number=number: {"made": number}, "gsa.later") for number in (2, 3)]
    assert made == [{"made": 2}, {"made": 2}]
    monkeypatch.setattr("gsa._kept._PACKAGE", ROOT / "gsa" / "files")  # planted: other sources
    assert kept("name", lambda: {"made": 4}, "gsa.later") == {"made": 4}


def test_the_operator_is_there_once_torch_and_gsa_are():
    for imports in ("import gsa, torch", "import torch, gsa"):
        subprocess.run([sys.executable, "-c", f"{imports}; torch.ops.gsa.attend"], check=True)
