"""Sweeps: of Hydra, of Optuna, of wandb; one job's failure is its own."""

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hydra.core.utils import JobReturn, JobStatus
from hydra.types import RunMode
from omegaconf import OmegaConf

import gsa
from gsa import viz
from gsa.report import read_report, write_report
from gsa.runner import ConfigError, RefuseBadConfig, train
from gsa.runner._folder import Busy
from gsa.runner._of_hydra import _refuse_one_checkpoint, _refuse_one_id
from gsa.runner._sweep_table import sweep_table
from tests.data.folders import write_pictures
from tests.forks import python

ROOT = Path(gsa.__file__).parent.parent
SHORT = [
    "model=digits_z2_sa", "model.channels=4", "model.num_heads=1", "trainer.limit_train_batches=2", "report=false",
    "trainer.max_epochs=1", "callbacks=quiet", "trainer.accelerator=cpu", "logger=none",
    "trainer.enable_progress_bar=false",
]  # fmt: skip


def sweep(folder, *overrides):
    return python(ROOT / "train.py", "-m", *SHORT, f"hydra.sweep.dir={folder}", *overrides)


def table(folder):
    with open(folder / "jobs.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_jobs_do_not_all_go_on_from_one_checkpoint(tmp_path):
    """They would all end as the run that it is of."""
    file = tmp_path / "a" / "checkpoints" / "last.ckpt"
    done = sweep(tmp_path / "b", "seed=0,1", f"ckpt_path={file}")
    assert done.returncode == 2 and "every job goes on from a checkpoint of its own" in done.stderr
    assert not list(tmp_path.rglob("report.json"))
    _refuse_one_checkpoint(OmegaConf.create({"train": False, "ckpt_path": str(file)}))  # which all may test


def test_a_failed_job_leaves_its_error_in_its_folder_and_the_others_go_on(tmp_path):
    """Started again, the sweep skips what has finished; ckpt_path=auto is no word of its folders' names."""
    words = ("model.neighbourhood=3,4,5", "hydra.sweep.subdir=${hydra.job.override_dirname}")
    done = sweep(tmp_path, *words)
    folders = sorted(tmp_path.glob("*model.neighbourhood=*"))
    assert done.returncode == 2  # that of a refused configuration
    assert [(folder / "report.json").exists() for folder in folders] == [True, False, True]
    assert "odd number" in (folders[1] / "train.log").read_text()
    rows = table(tmp_path)
    assert [row["model.neighbourhood"] for row in rows if row["val_accuracy"]] != [] and len(rows) == 3
    assert rows[-1] == {
        "model.neighbourhood": "4", "parameters": "", "val_accuracy": "", "test_accuracy": "", "folder": str(folders[1])
    }  # fmt: skip
    assert done.stdout.count(str(tmp_path / "jobs.csv")) == 1 and "`Trainer.fit` stopped" not in done.stdout

    (folders[2] / "report.json").unlink()
    before = (folders[0] / "report.json").stat().st_mtime_ns
    again = sweep(tmp_path, *words, "ckpt_path=auto")
    assert again.returncode == 2 and again.stdout.count("finished already") == 1
    assert (folders[0] / "report.json").stat().st_mtime_ns == before and (folders[2] / "report.json").exists()


def test_a_job_that_fails_says_so_at_once(capsys):
    """At the end of a sweep, Hydra tells of the first one alone; of a refused one, its log has told."""
    told = RefuseBadConfig().on_job_end
    config = OmegaConf.create({"hydra": {"mode": RunMode.MULTIRUN}})
    for error in (RuntimeError("no room\nfor two lines"), ConfigError("refused"), Busy("at work")):
        told(config, JobReturn(_return_value=error, status=JobStatus.FAILED))
    assert capsys.readouterr().err == "this job has failed: RuntimeError: no room\nthis job has failed: at work\n"
    told(OmegaConf.create({"hydra": {"mode": RunMode.RUN}}), JobReturn(_return_value=error, status=JobStatus.FAILED))
    told(config, JobReturn(_return_value=0.5, status=JobStatus.COMPLETED))
    assert not capsys.readouterr().err


def test_a_table_of_damaged_jobs_is_a_table(tmp_path):
    for job, words in enumerate(["- seed=0\n- a=1\x1b\n", "- seed=1\n- a=1\x1b\n", "{", "3"]):
        (tmp_path / str(job) / ".hydra").mkdir(parents=True)
        (tmp_path / str(job) / ".hydra" / "overrides.yaml").write_text(words.replace("\x1b", ""))
        write_report({"val_accuracy": 0.1 * job, "test_accuracy": 0.5, "parameters": 7}, tmp_path / str(job))
    (tmp_path / "0" / "report.json").write_text("{")
    text = sweep_table(tmp_path)
    assert [row["folder"][-1] for row in table(tmp_path)] == ["3", "2", "1", "0"]
    assert text.count("–") >= 2 and "to test the best" not in text


def test_jobs_that_differ_in_their_seed_alone_have_a_mean(tmp_path):
    """Planted: one that has not finished, one that was not tested, and jobs of which nothing is repeated."""
    found = {("a", 0): (0.5, 0.4), ("a", 1): (0.7, 0.6), ("b", 0): (0.9, 0.7), ("b", 1): (0.8, None), ("c", 0): None}
    for job, ((name, seed), accuracies) in enumerate(found.items()):
        folder = tmp_path / str(job)
        (folder / ".hydra").mkdir(parents=True)
        (folder / ".hydra" / "overrides.yaml").write_text(f"- model={name}\n- seed={seed}\n")
        if accuracies:
            write_report(dict(zip(("val_accuracy", "test_accuracy"), accuracies, strict=True)), folder)
    lines = [line.split("  ") for line in sweep_table(tmp_path).splitlines()[-3:]]
    assert [[cell.strip() for cell in line if cell] for line in lines] == [
        ["model", "jobs over seed", "val_accuracy", "test_accuracy"],
        ["b", "2", "0.8500 ± 0.0707", "0.7000 (1 jobs)"],
        ["a", "2", "0.6000 ± 0.1414", "0.5000 ± 0.1414"],
    ]
    assert [row["test_accuracy"] for row in table(tmp_path)] == ["0.7000", "", "0.6000", "0.4000", ""]
    shutil.rmtree(tmp_path / "1")
    shutil.rmtree(tmp_path / "3")
    assert "±" not in sweep_table(tmp_path) and sweep_table(tmp_path).endswith("has this table")


def test_a_picture_shows_how_the_jobs_went_that_have_drawn_theirs(tmp_path, monkeypatch):
    """Each by what was varied beside the seed. Planted: one without pictures, and one job alone."""
    drawn, draw, rows = [], viz.draw_runs, [{"epoch": 0, "seconds": 1.0, "val/accuracy": 0.5}]
    monkeypatch.setattr(viz, "draw_runs", lambda *given: drawn.append(given) or draw(*given))
    words = [("a", "0.1", 0), ("a", "0.1", 1), ("$b$", "0.2", 0), ("c", "0.1", 0)]
    for job, (name, rate, seed) in enumerate(words):
        folder = tmp_path / str(job)
        (folder / ".hydra").mkdir(parents=True)
        overrides = f"- model={name}\n- optimizer.lr={rate}\n- seed={seed}\n"
        (folder / ".hydra" / "overrides.yaml").write_text(overrides)
        write_report({"val_accuracy": 0.9 - 0.1 * job, "test_accuracy": None, "history": rows}, folder)
        if name != "c":
            (folder / "learning.png").touch()
    assert "jobs.png shows how they went" in sweep_table(tmp_path) and (tmp_path / "jobs.png").stat().st_size > 1000
    named = {"model=a, lr=0.1": [rows, rows], r"model=\$b\$, lr=0.2": [rows]}
    assert drawn == [(named, "val/accuracy")]
    for job in "12":
        shutil.rmtree(tmp_path / job)
    assert "jobs.png" not in sweep_table(tmp_path) and len(drawn) == 1


def test_jobs_whose_epochs_were_chosen_by_balanced_accuracy_are_ranked_by_it(tmp_path):
    """Planted: the one with the larger accuracy, and a job of an earlier version."""
    for job, (accuracy, balanced) in enumerate([(0.9, 0.5), (0.8, 0.7), (0.7, None)]):
        (tmp_path / str(job) / ".hydra").mkdir(parents=True)
        (tmp_path / str(job) / ".hydra" / "overrides.yaml").write_text(f"- class_weights={job}\n")
        more = {"chosen_by": "val_balanced_accuracy", "val_balanced_accuracy": balanced} if balanced else {}
        write_report({"val_accuracy": accuracy, "test_accuracy": None, **more}, tmp_path / str(job))
    text = sweep_table(tmp_path)
    assert [(row["class_weights"], row["val_balanced_accuracy"]) for row in table(tmp_path)] == [
        ("1", "0.7000"),
        ("0", "0.5000"),
        ("2", ""),
    ]
    assert "val_accuracy" not in text


def test_folds_have_a_mean_that_says_what_is_missing(tmp_path):
    """Planted: folds of another number, one that has not finished, and one of pictures that were added later."""
    for job, (fold, accuracy, files) in enumerate([("1/3", 0.4, "x"), ("2/3", 0.6, "x"), ("3/3", None, "x"),
                                                   ("1/2", 0.0, "x"), ("2/2", 0.2, "y")]):  # fmt: skip
        folder = tmp_path / str(job)
        (folder / ".hydra").mkdir(parents=True)
        (folder / ".hydra" / "overrides.yaml").write_text(f"- data.fold={fold}\n")
        if accuracy is not None:
            write_report({"val_accuracy": accuracy, "test_accuracy": 0.0, "data": {"files": files}}, folder)
    lines = [[cell.strip() for cell in line.split("  ") if cell] for line in sweep_table(tmp_path).splitlines()[-3:]]
    assert lines[0] == ["jobs over data.fold", "val_accuracy", "test_accuracy"]
    assert lines[1] == ["2 of 3", "0.5000 ± 0.1414", "0.0000 ± 0.0000"]
    assert lines[2][:2] == ["2", "of other pictures than one another"]  # without a mean, which no other is held against


def test_folds_of_several_seeds_are_counted_together(tmp_path):
    for job in range(5):  # 1/2, 2/2 of two seeds, and one of a third
        folder = tmp_path / str(job)
        (folder / ".hydra").mkdir(parents=True)
        (folder / ".hydra" / "overrides.yaml").write_text(f"- data.fold={1 + job % 2}/2\n- seed={job // 2}\n")
        write_report({"val_accuracy": 0.5, "test_accuracy": None}, folder)
    assert sweep_table(tmp_path).splitlines()[-1].split("  ")[0] == "5 of 6"


def test_a_finished_run_of_an_earlier_version_has_no_balanced_accuracy(tmp_path):
    words = ("seed=0,1", "callbacks.best.monitor=val/balanced_accuracy", "objective=val/balanced_accuracy")
    assert sweep(tmp_path, *words).returncode == 0
    report = read_report(tmp_path / "0")
    write_report({key: value for key, value in report.items() if "balanced" not in key}, tmp_path / "0")
    again = sweep(tmp_path, *words, "ckpt_path=auto")
    assert again.returncode == 2 and "earlier version, which did not measure val/balanced_acc" in again.stderr
    assert "Traceback" not in again.stderr


def test_a_sweep_is_not_begun_where_its_folder_would_be_a_class(tmp_path):
    write_pictures(tmp_path, parts=("all",))
    words = ("model=imagefolder_gsa", f"data.root={tmp_path / 'all'}", "seed=0,1")
    done = sweep(tmp_path / "all" / "sweep", *words)
    assert done.returncode == 2 and "folder must not be in data.root" in done.stderr
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["cat", "dog"]


def test_a_report_of_another_job_is_not_in_the_table(small, tmp_path):
    """Hydra notes the words of a job before it is refused in the folder of another one; a table of none is no news."""
    train(small("trainer.max_epochs=1", "seed=null", folder="0"))
    drawn, noted = read_report(tmp_path / "0")["seed"], tmp_path / "0" / ".hydra"
    noted.mkdir()
    for words in ("seed=3", f"seed={drawn}", "seed=null"):
        config = small("trainer.max_epochs=1", words, "logger=wandb", folder="0")
        config.output_dir = "${hydra:runtime.output_dir}"
        OmegaConf.save(config, noted / "config.yaml")
        (noted / "overrides.yaml").write_text(f"- {words}")
        text = sweep_table(tmp_path)
        assert bool(table(tmp_path)[0]["val_accuracy"]) == (words != "seed=3")
    finished = table(tmp_path)
    (noted / "config.yaml").write_text((noted / "config.yaml").read_text().replace("seed: null", "seed: 3"))
    assert "has an earlier table, which is kept" in sweep_table(tmp_path) and "has this table" in text
    assert table(tmp_path) == finished


def test_a_job_that_is_refused_takes_no_place_of_another_in_the_table(small, tmp_path):
    """Hydra notes its words before; the run has kept its own."""
    noted = tmp_path / "0" / ".hydra" / "overrides.yaml"
    noted.parent.mkdir(parents=True)
    noted.write_text("- seed=3\n")
    train(small("trainer.max_epochs=1", "seed=3", folder="0"))
    noted.write_text("- optimizer.lr=0.5\n")
    with pytest.raises(ConfigError, match="holds a run already"):
        train(small("trainer.max_epochs=1", "optimizer.lr=0.5", folder="0"))
    other = tmp_path / "1" / ".hydra" / "overrides.yaml"
    other.parent.mkdir(parents=True)
    other.write_text("- seed=4\n")
    sweep_table(tmp_path)
    assert [(row["seed"], bool(row["val_accuracy"])) for row in table(tmp_path)] == [("3", True), ("4", False)]


def test_one_id_on_wandb_is_not_for_all_jobs(configure, monkeypatch):
    _refuse_one_id(configure("logger=wandb", "logger.wandb.offline=true"))
    monkeypatch.setenv("WANDB_RUN_ID", "abc")
    _refuse_one_id(configure("logger=csv"))
    with pytest.raises(ConfigError, match="WANDB_RUN_ID names one run on wandb"):
        _refuse_one_id(configure("logger=wandb", "logger.wandb.offline=true"))


@pytest.mark.slow
def test_jobs_run_side_by_side(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    done = sweep(tmp_path, "seed=0,1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "data.num_workers=1")
    assert done.returncode == 0, done.stderr
    assert all((tmp_path / str(job) / "report.json").exists() for job in range(2))


@pytest.mark.slow
def test_jobs_side_by_side_save_when_their_sweep_is_told_to_stop(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    words = [
        *SHORT,
        "seed=0,1,2,3",
        "hydra/launcher=joblib",
        "hydra.launcher.n_jobs=2",
        "trainer.max_epochs=9999",
        "data.num_workers=1",
    ]
    command = [sys.executable, str(ROOT / "train.py"), "-m", *words, f"hydra.sweep.dir={tmp_path}"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as leader:
        while len(list(tmp_path.glob("*/checkpoints/best.ckpt"))) < 2 and leader.poll() is None:
            time.sleep(0.1)
        os.killpg(leader.pid, signal.SIGTERM)  # as SLURM does
        said = leader.communicate()[0]
    assert leader.returncode == 128 + signal.SIGTERM, said
    assert said.count("stopped by SIGTERM and saved in") == 2 and "Traceback" not in said, said


@pytest.mark.slow
def test_a_process_of_a_sweep_that_is_killed_ends_it_in_a_line_and_the_rest_is_done_later(tmp_path, monkeypatch):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    words = ("seed=0,1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "trainer.max_epochs=2", "ckpt_path=auto")
    kill = ("+callbacks.fail._target_=tests.runner.faults.FailAt", "+callbacks.fail.how=kill")
    monkeypatch.setenv("FAILING_RANK", "0")
    killed = sweep(tmp_path, *words, *kill)
    assert killed.returncode == 1 and "Traceback" not in killed.stderr, killed.stderr
    assert f"a process of this sweep was killed; the same command with  hydra.sweep.dir={tmp_path} " in killed.stderr
    monkeypatch.setenv("FAILING_RANK", "9")
    assert sweep(tmp_path, *words, *kill).returncode == 0
    assert all((tmp_path / str(job) / "report.json").exists() for job in range(2))


@pytest.mark.slow
def test_two_sweeps_share_their_jobs(tmp_path):
    """Each job is trained by one of them, and passed over or found finished by the other."""
    command = [sys.executable, str(ROOT / "train.py"), "-m", *SHORT, "seed=0,1,2", "ckpt_path=auto",
               "trainer.max_epochs=40", f"hydra.sweep.dir={tmp_path}"]  # fmt: skip
    sweeps = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
              for _ in range(2)]  # fmt: skip
    said = [sweep.communicate()[0] for sweep in sweeps]
    assert [sweep.returncode for sweep in sweeps] == [0, 0], "\n\n".join(said)
    jobs = [tmp_path / str(job) for job in range(3)]
    trained = [sum(f"report       {job}" in text for text in said) for job in jobs]
    assert trained == [1, 1, 1], "\n\n".join(said)
    assert any("passed over: another process" in text for text in said)
