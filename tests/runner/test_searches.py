"""Searches: of Optuna, and of wandb."""

import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_module
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from gsa import runner
from gsa.report import read_report, write_report
from gsa.runner import check
from gsa.runner._quoted import override
from gsa.runner._search import _fixed_words, refuse_bad_search
from gsa.runner._sweep_table import sweep_table
from gsa.runner._words import keep_words, words_of
from tests.forks import python
from tests.runner.test_sweeps import ROOT, SHORT, sweep, table
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
    runner.register()
    command = line.removeprefix("to test the best: python train.py ")
    (checkpoint,) = (word for word in shlex.split(command) if word.startswith("ckpt_path="))
    assert refusal(command) is None and "train=false" in command
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("to train the best with other seeds: "))
    assert refusal(line.partition("python train.py ")[2]) is None and line.endswith(" seed=1,2,3")
    assert Path(checkpoint.removeprefix("ckpt_path=")).is_file()


def test_a_search_that_cannot_be_is_refused_or_ends_in_a_line(tmp_path):
    """No sweep; in the folder of another one, which drew other values; or all of whose trials are refused."""
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    alone = python(ROOT / "train.py", "search=optuna")
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


@pytest.fixture
def refused():
    """refused(words) → why a search is, or None."""
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    runner.register()

    def of(*words):
        with initialize_config_module("gsa.configs", version_base="1.3"):
            config = compose("train", ["search=optuna", *words], return_hydra_config=True)
        try:
            refuse_bad_search(config)
        except runner.ConfigError as error:
            return str(error)
        return None

    return of


@pytest.mark.filterwarnings("ignore")  # Optuna's own
@pytest.mark.parametrize("words, why", [
    (["hydra.sweeper.direction=minimize"], "direction=maximize, as search=optuna has, but got minimize"),
    (["hydra.sweeper.direction=[maximize,minimize]"], r"but got \['maximize', 'minimize'\]"),
    (["hydra.sweeper.n_trials=0"], "n_trials must be a positive integer, but got 0"),
    (["hydra.sweeper.n_jobs=-1"], "n_jobs must be a positive integer, but got -1"),
    (["objective=test/accuracy"], "expected objective=val/…, but got test/accuracy"),
    (["hydra.sweeper.storage=foo"], "storage=foo cannot be used: Could not parse"),
])  # fmt: skip
def test_what_no_search_could_find_is_refused(refused, tmp_path, words, why):
    folder = f"hydra.sweep.dir={tmp_path}"
    assert re.search(why, refused(folder, *words)) and refused(folder) is None


def test_a_folder_is_that_of_one_search_unless_it_draws_the_same(refused, tmp_path):
    folder = f"hydra.sweep.dir={tmp_path}"
    (tmp_path / "0" / ".hydra").mkdir(parents=True)
    (tmp_path / "0" / ".hydra" / "overrides.yaml").write_text("- seed=0\n")
    seeded = "hydra.sweeper.sampler.seed=1"
    assert "draws other values than the one in" in refused(folder)
    assert "draws other values than the one in" in refused(folder, "ckpt_path=auto")
    assert "ckpt_path=auto goes on with those of this search" in refused(folder, seeded)
    assert refused(folder, seeded, "ckpt_path=auto") is None
    stored = f"hydra.sweeper.storage=sqlite:///{tmp_path}/of.db"
    assert "goes on with others, in another folder" in refused(folder, seeded, "ckpt_path=auto", stored)


@pytest.mark.filterwarnings("ignore")  # Optuna's own
def test_a_study_is_of_the_same_runs_and_of_other_trials_each_time(refused, tmp_path):
    optuna = pytest.importorskip("optuna")
    stored = (f"hydra.sweeper.storage=sqlite:///{tmp_path}/of.db", f"hydra.sweep.dir={tmp_path / 'new'}")
    assert refused(*stored, "model=digits_z2_sa") is None
    assert refused(*stored, "model=digits_z2_sa", "seed=3", "logger=none") is None
    other = refused(*stored, "model=digits_r4_sa")
    assert "other runs (model=digits_z2_sa there, model=digits_r4_sa here)" in other
    study = optuna.load_study(study_name="gsa", storage=stored[0].partition("=")[2])
    study.add_trial(optuna.trial.create_trial(value=0.5))
    assert refused(*stored, "model=digits_z2_sa") is None
    assert "1 trials, which a search with" in refused(*stored, "model=digits_z2_sa", "hydra.sweeper.sampler.seed=1")


def test_words_that_are_drawn_are_not_those_of_all_trials():
    words = ["model=digits_z2_sa", "optimizer.lr=interval(0.1,0.2)", "ema=null,0.9", "optimizer=choice(sgd,muon)",
             "+trainer.max_steps=9", "seed=1", "search=optuna", "logger=none", "objective=val/accuracy",
             "class_weights=[1,3]"]  # fmt: skip
    fixed = ["+trainer.max_steps=9", "class_weights=[1,3]", "model=digits_z2_sa", "objective=val/accuracy"]
    assert _fixed_words(words) == fixed


def test_the_best_trial_of_a_stored_study_may_be_elsewhere(tmp_path):
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "overrides.yaml").write_text("- seed=3\n")
    write_report({"val_accuracy": 0.5, "test_accuracy": None}, tmp_path)
    for best, is_elsewhere in ((0.5, False), (0.75, True)):
        (tmp_path / "optimization_results.yaml").write_text(f"best_value: {best}\n")
        assert ("a better trial of this study, 0.7500, is of" in sweep_table(tmp_path)) is is_elsewhere


@pytest.mark.slow
def test_two_searches_do_not_share_a_folder(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    words = [
        "-m",
        "search=optuna",
        *SHORT,
        "hydra.sweeper.n_trials=9",
        "hydra.sweeper.sampler.seed=1",
        "ckpt_path=auto",
    ]
    command = [sys.executable, str(ROOT / "train.py"), *words, f"hydra.sweep.dir={tmp_path}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as first:
        while not (tmp_path / "0" / ".hydra").exists() and first.poll() is None:
            time.sleep(0.1)
        second = subprocess.run(command, capture_output=True, text=True)
        first.send_signal(signal.SIGTERM)
        said = first.communicate()[1]
    assert second.returncode == 2 and f"another process ({first.pid} on" in second.stderr, second.stderr
    assert first.returncode == 128 + signal.SIGTERM and "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1.0, 1.8, 2.6])
def test_a_sweep_that_is_stopped_while_it_begins_ends_without_a_trace(tmp_path, seconds):
    """In the midst of torch's import, which no later one can go on with."""
    command = [sys.executable, str(ROOT / "train.py"), "-m", *SHORT, "seed=0,1", f"hydra.sweep.dir={tmp_path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as sweeping:
        time.sleep(seconds)
        sweeping.send_signal(signal.SIGTERM)
        said = sweeping.communicate()[0]
    assert sweeping.returncode == 128 + signal.SIGTERM and "Traceback" not in said, said


@pytest.mark.slow
def test_a_trial_that_is_stopped_is_ended_by_a_command_of_its_own(tmp_path):
    """As the search would draw other values."""
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    words = ["-m", "search=optuna", *SHORT, "trainer.max_epochs=99", f"hydra.sweep.dir={tmp_path}"]
    with subprocess.Popen([sys.executable, str(ROOT / "train.py"), *words], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as search:  # fmt: skip
        while not (tmp_path / "0" / "checkpoints" / "last.ckpt").exists() and search.poll() is None:
            time.sleep(0.1)
        search.send_signal(signal.SIGTERM)
        said = search.communicate()[1]
    (command,) = re.findall(r"saved in .*; python train.py (.*)  finishes this trial; a search begins anew", said)
    runner.register()
    assert refusal(command) is None and "test=false" in command
    assert f"ckpt_path={tmp_path}/0/checkpoints/last.ckpt" in shlex.split(command)


@pytest.mark.parametrize("variables", [
    {"TORCHELASTIC_RUN_ID": "a", "RANK": "1", "WORLD_SIZE": "2"}, {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"},
])  # fmt: skip
def test_each_of_several_processes_leads_the_same_search(refused, monkeypatch, tmp_path, variables):
    """Whose jobs another of them may have begun; a process that trains a run of its own leads a search of its own."""
    folder, seeded, auto = f"hydra.sweep.dir={tmp_path}", "hydra.sweeper.sampler.seed=1", "ckpt_path=auto"
    together, stored = "+trainer.strategy=ddp", f"hydra.sweeper.storage=sqlite:///{tmp_path}/a.db"
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for words in ([], [seeded], [auto], [seeded, auto, stored]):
        assert "each of several processes leads the search" in refused(folder, together, *words)
    assert refused(folder) is None
    (tmp_path / "0" / ".hydra").mkdir(parents=True, exist_ok=True)
    (tmp_path / "0" / ".hydra" / "overrides.yaml").write_text("- seed=0\n")
    assert refused(folder, together, seeded, auto) is None


def test_a_search_in_the_script_of_a_slurm_job_is_alone(refused, monkeypatch, tmp_path):
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "4")
    assert refused(f"hydra.sweep.dir={tmp_path}", "+trainer.strategy=ddp") is None


def test_divisions_are_not_drawn_by_a_file_either(refused, tmp_path):
    drawn = "+hydra.sweeper.params={data.fold: 'choice(1/5,2/5)'}"
    assert "expected one data.fold, but got choice(1/5,2/5)" in refused(f"hydra.sweep.dir={tmp_path}", drawn)


def test_the_words_of_a_run_are_those_of_its_own_process(tmp_path, monkeypatch):
    """Planted: what another command has noted meanwhile."""
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "overrides.yaml").write_text("- seed=9\n")
    keep_words(tmp_path)
    assert words_of(tmp_path) == (("seed=9",), True)
    of_hydra = OmegaConf.create(
        {"runtime": {"output_dir": str(tmp_path)}, "overrides": {"task": ["seed=3", "tags=[ä,b]"]}}
    )
    monkeypatch.setattr(HydraConfig, "initialized", lambda: True)
    monkeypatch.setattr(HydraConfig, "get", lambda: of_hydra)
    keep_words(tmp_path)
    assert words_of(tmp_path) == (("seed=3", "tags=[ä,b]"), True)
    of_hydra.runtime.output_dir = "elsewhere"  # of an earlier job of this process
    keep_words(tmp_path)
    assert words_of(tmp_path) == (("seed=9",), True)
