"""Searches: of Optuna, and of wandb."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_module

from gsa import runner
from gsa.report import read_report, write_report
from gsa.runner import check
from gsa.runner._quoted import override
from gsa.runner._sweep_table import sweep_table
from tests.runner.test_sweeps import ROOT, sweep, table
from tests.test_commands import refusal


@pytest.mark.parametrize("tested", [None, 0.5])
def test_the_best_job_that_was_not_tested_is_tested_by_its_own_words(tmp_path, tested):
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "overrides.yaml").write_text("- seed=3\n- test=false\n- search=optuna\n- ckpt_path=auto\n")
    write_report({"val_accuracy": 0.5, "test_accuracy": tested}, tmp_path)
    best = tmp_path / "checkpoints" / "best.ckpt"
    best.parent.mkdir()
    best.touch()
    command = f"to test the best: python train.py seed=3 train=false {override('ckpt_path', best)}"
    assert sweep_table(tmp_path).endswith(command) is (tested is None)


def test_a_search_over_divisions_of_the_pictures_is_refused(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    for words in (["data.fold=1/5,2/5"], ["data.split_seed=choice(0,1)"]):
        done = sweep(tmp_path, "search=optuna", "data=imagefolder", "model=digits_z2_sa", *words)
        assert done.returncode == 2 and "compared on one division of the pictures: expected one data." in done.stderr


def test_a_search_judges_as_its_epochs_are_chosen(tmp_path):
    done = sweep(tmp_path / "a", "search=optuna", "objective=val/balanced_accuracy", "optimizer.lr=interval(0.001,0.1)")
    needed = "a search needs callbacks.best.monitor=val/balanced_accuracy, by which it judges"
    assert done.returncode == 2 and needed in done.stderr and not (tmp_path / "a" / "0").exists()


def test_optuna_searches(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    done = sweep(tmp_path, "search=optuna", "hydra.sweeper.n_trials=2", "objective=val/accuracy")
    assert done.returncode == 0, done.stderr
    best = yaml.safe_load((tmp_path / "optimization_results.yaml").read_text())
    assert 0 <= best["best_value"] <= 1 and "optimizer.lr" in best["best_params"]
    rows = table(tmp_path)
    assert set(best["best_params"]) == set(rows[0]) - {"parameters", "val_accuracy", "folder"}
    assert float(rows[0]["val_accuracy"]) == pytest.approx(best["best_value"], abs=1e-4)
    reports = [read_report(tmp_path / str(job)) for job in range(2)]
    assert [report["test_accuracy"] for report in reports] == [None, None]
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("to test the best: python train.py "))
    command = line.removeprefix("to test the best: python train.py ")
    (checkpoint,) = (word for word in shlex.split(command) if word.startswith("ckpt_path="))
    assert refusal(command) is None and "train=false" in command
    assert Path(checkpoint.removeprefix("ckpt_path=")).is_file()


def test_a_search_that_cannot_be_is_refused_or_ends_in_a_line(tmp_path):
    """No sweep; in the folder of another one, which drew other values; or all of whose trials are refused."""
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    alone = subprocess.run([sys.executable, str(ROOT / "train.py"), "search=optuna"], capture_output=True, text=True)
    assert alone.returncode == 2 and "search=optuna needs -m" in alone.stderr
    done = sweep(tmp_path, "search=optuna", "hydra.sweeper.n_trials=1", "model.neighbourhood=4")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("the search has failed, see the logs of its trials: ")
    again = sweep(tmp_path, "search=optuna", "hydra.sweeper.n_trials=1", "ckpt_path=auto")
    assert again.returncode == 2 and "a search draws other values than the one in" in again.stderr
    assert len(again.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_search_with_a_seed_is_started_again(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    seeded = ("search=optuna", "hydra.sweeper.n_trials=1", "ckpt_path=auto", "hydra.sweeper.sampler.seed=1")
    done = [sweep(tmp_path, *seeded) for _ in range(2)]
    assert [one.returncode for one in done] == [0, 0] and "finished already" in done[1].stdout


@pytest.mark.parametrize("path", sorted((ROOT / "sweeps").glob("*.yaml")), ids=lambda p: p.stem)
def test_the_command_lines_of_wandb_sweeps_are_configurations(path):
    """wandb's own function writes the command lines; Hydra composes them."""
    from wandb.sdk.launch.sweeps.utils import create_sweep_command_args

    runner.register()
    plan = yaml.safe_load(path.read_text())
    assert plan["program"] == "train.py" and "${args_no_hyphens}" in plan["command"]
    ends = ("values", "min", "max")
    for pick in range(3):
        chosen = {}
        for name, spec in plan["parameters"].items():
            options = spec["values"] if "values" in spec else [spec[end] for end in ends if end in spec]
            chosen[name] = {"value": options[pick % len(options)]}
        words = create_sweep_command_args({"args": chosen})["args_no_hyphens"]
        assert not any(re.search("=None$|e-", word) for word in words), words
        with initialize_config_module("gsa.configs", version_base="1.3"):
            config = compose("train", [*words, "logger=wandb", "output_dir=somewhere"])
        config.logger = None
        if "rotmnist" not in path.stem:
            check(config)
