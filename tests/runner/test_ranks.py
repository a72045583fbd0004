"""Two processes train what one would have trained, on the same configuration."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gsa
from gsa.runner import train
from gsa.saved import read_checkpoint

ROOT = Path(gsa.__file__).parent.parent
TWO = ("trainer.devices=2", "+trainer.strategy._target_=gsa.training.ddp", "+trainer.strategy.timeout=60")
SMALLEST = (
    "model=digits_z2_sa", "model.channels=4", "model.num_heads=1", "model.head_dim=3", "model.neighbourhood=3",
    "trainer.accelerator=cpu", "trainer.enable_progress_bar=false", "callbacks=quiet", "logger=none", "report=false",
    "trainer.max_epochs=2", "trainer.limit_train_batches=3",
)  # fmt: skip
EXACT = ("model.norm=sample", "trainer.precision=64-true", "optimizer=sgd", "data.batch_size=16")


def state(folder):
    return read_checkpoint(folder / "checkpoints" / "last.ckpt")["state_dict"]


@pytest.mark.slow
@pytest.mark.parametrize("weighed", ["class_weights=null", "class_weights=balanced"])
def test_two_processes_train_what_one_trains(small, tmp_path, weighed):
    """float64, no dropout: weights after twelve steps agree to 1e-10, accuracies are the same."""
    options = (*EXACT, "trainer.limit_train_batches=6", weighed)
    one, alone = train(small(*options, folder="one"))
    two, together = train(small(*options, *TWO, folder="two"))
    assert two == one
    assert together["report"]["used"] == alone["report"]["used"]
    said = [
        [line.split(",") for line in (tmp_path / name / "test.csv").read_text().splitlines()] for name in ("one", "two")
    ]
    assert [row[:3] for row in said[0]] == [row[:3] for row in said[1]] and len(said[0]) > 1
    for (name, a), b in zip(state(tmp_path / "one").items(), state(tmp_path / "two").values(), strict=True):
        assert (a - b).abs().max() <= 1e-10, name
    for a, b in zip(alone["history"], together["report"]["history"], strict=True):
        assert abs(a["train/loss"] - b["train/loss"]) < 1e-12 and abs(a["val/loss"] - b["val/loss"]) < 1e-6


@pytest.mark.slow
def test_two_processes_train_what_one_trains_on_data_of_others(configure, tmp_path):
    """float64, no dropout; with batches of 12 of 64, of which the last has 4. Planted in the tests of shares."""
    data = ("data=own", "data._target_=tests.data.test_own_data.Stripes", "data.batch_size=12", "+data.count=64")
    same = (*data, *SMALLEST[:-1], "model.norm=sample", "trainer.precision=64-true", "optimizer=sgd", "recipe=digits")
    one, alone = train(configure(*same, folder="one"))
    two, together = train(configure(*same, *TWO, folder="two"))
    assert two == pytest.approx(one) and together["report"]["used"] == alone["report"]["used"]
    for (name, a), b in zip(state(tmp_path / "one").items(), state(tmp_path / "two").values(), strict=True):
        assert (a - b).abs().max() <= 1e-10, name
    rows = [(tmp_path / name / "test.csv").read_text().splitlines() for name in ("one", "two")]
    assert [row.split(",")[:3] for row in rows[0]] == [row.split(",")[:3] for row in rows[1]] and len(rows[0]) == 65


SWEEP = """
import os
import gsa.runner._run
if os.environ["LAUNCHER"] == "stock":  # Lightning starts the other process on the command line of this one
    gsa.runner._run.needs_processes = lambda trainer: False
    gsa.runner._run.meet = lambda trainer, place: None
from gsa import runner
runner.main()
"""


@pytest.mark.slow
def test_two_processes_train_heads_that_start_at_offsets(tmp_path):
    smallest = [option for option in SMALLEST if not option.startswith("model")]
    done = subprocess.run([sys.executable, str(ROOT / "train.py"), *smallest, *TWO, f"hydra.run.dir={tmp_path}/run"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "report.json").read_text())["model"] == "digits_gsa"


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["ours", "stock"])
def test_an_optuna_sweep_trains_one_configuration_on_both_ranks(tmp_path, launcher):
    """Planted failure: with the stock launcher, every rank samples rates of its own, and the second is refused."""
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    command = [sys.executable, str(script), "-m", "hydra/sweeper=optuna",
               f"hydra.sweeper.n_trials={2 if launcher == 'ours' else 1}",
               "hydra.sweeper.n_jobs=1", "hydra.sweeper.study_name=s", "hydra.sweeper.storage=null",
               "hydra.sweeper.direction=maximize", "optimizer.lr=interval(0.001,0.1)",
               f"hydra.sweep.dir={tmp_path}/out",
               "+callbacks.tell._target_=tests.runner.faults.TellConfig",
               f"+callbacks.tell.folder={tmp_path}/told", *SMALLEST, *TWO]  # fmt: skip
    env = os.environ | {"PYTHONPATH": str(ROOT), "LAUNCHER": launcher}
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    if launcher == "ours":
        assert done.returncode == 0, done.stderr
        files = sorted((tmp_path / "told").iterdir(), key=lambda p: p.stat().st_mtime)
        rates = [json.loads(p.read_text())["lr"] for p in files]
        assert len(rates) == 4 and rates[0] == rates[1] != rates[2] == rates[3]
        assert (tmp_path / "out" / "1" / "report.json").exists() and not (tmp_path / "out" / "2").exists()
    else:
        assert "a search draws other values than the one in" in done.stderr and not (tmp_path / "told").exists()
