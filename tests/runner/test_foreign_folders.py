"""A folder of somebody else, where a command is given or a run goes on, has it do nothing else."""

import os

import pytest

from gsa.runner._dotenv import take_dotenv
from gsa.runner._folder import refuse_unwritable_folder
from gsa.runner._schema import ConfigError
from tests.forks import python
from tests.runner.test_ranks import ROOT


def test_variables_of_ours_alone_are_taken_from_a_file(tmp_path, monkeypatch, capsys):
    for name in ("GSA_DATA", "WANDB_PROJECT", "GSA_OUTPUTS", "WANDB_BASE_URL", "PYTHONPATH", "MINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GSA_OUTPUTS", "/as/before")
    (tmp_path / ".env").write_text(
        "GSA_DATA=/my/data\nGSA_OUTPUTS=/other\nWANDB_PROJECT=mine\nWANDB_BASE_URL=http://a\nPYTHONPATH=/evil\nMINE=1\n"
    )
    take_dotenv(tmp_path / ".env")
    assert (os.environ.pop("GSA_DATA"), os.environ.pop("WANDB_PROJECT")) == ("/my/data", "mine")
    assert os.environ["GSA_OUTPUTS"] == "/as/before"
    assert not {"WANDB_BASE_URL", "PYTHONPATH", "MINE"} & os.environ.keys()
    assert capsys.readouterr().err.startswith(
        "passed over in .env: MINE, PYTHONPATH, WANDB_BASE_URL (GSA_… and WANDB_…"
    )
    os.mkfifo(tmp_path / "pipe")  # which nobody fills
    for name in ("none", "pipe"):
        take_dotenv(tmp_path / name)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", [".lock", "report.txt", ".hydra/config.yaml", "train.log"])
def test_a_run_writes_through_no_link(tmp_path, name):
    """Nor does one that is refused; planted: a link to a folder, as checkpoints may be."""
    (tmp_path / "mine").write_text("as before")
    link = tmp_path / "run" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "mine")
    (tmp_path / "run" / "config.yaml").touch()
    with pytest.raises(ConfigError, match=f"{name} is a link to"):
        refuse_unwritable_folder(tmp_path / "run")
    if name == ".lock":  # which is written first
        done = python(ROOT / "train.py", f"hydra.run.dir={tmp_path / 'run'}")
        assert done.returncode == 2 and ".lock is a link to" in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "mine").read_text() == "as before"
    link.unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "checkpoints").symlink_to(tmp_path / "elsewhere")
    refuse_unwritable_folder(tmp_path / "run")


def test_plugins_of_the_current_folder_are_nobodys(tmp_path):
    (tmp_path / "hydra_plugins").mkdir()
    (tmp_path / "hydra_plugins" / "evil.py").write_text("open('ran', 'w')")
    python(ROOT / "train.py", "--help", cwd=tmp_path).check_returncode()
    assert not (tmp_path / "ran").exists()
