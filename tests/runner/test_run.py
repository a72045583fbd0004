"""Whole runs, a few steps long."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from omegaconf import OmegaConf

import gsa
from gsa.report import read_report, symmetry_of
from gsa.runner import ConfigError, _run, build, train
from gsa.saved import read_checkpoint
from tests.report.test_wandb import of_type, read_back

ROOT = Path(gsa.__file__).parent.parent
KEYS = {
    "model", "group", "form", "parameters", "epochs", "train_seconds", "seconds_per_epoch", "peak_memory_mb",
    "val_accuracy", "test_accuracy", "equivariance_error", "seed", "versions", "data", "split",
}  # fmt: skip


def test_a_run_trains_selects_tests_and_reports(small, tmp_path):
    metrics, objects = train(small("report=true", "logger=csv", "model=digits_r4_sa"))
    folder, report = tmp_path / "run", objects["report"]
    assert read_report(folder) == report and report.keys() > KEYS
    counts = report["confusion"]["counts"]
    assert report["confusion"]["classes"] == list(report["class_accuracy"]) and sum(map(sum, counts)) == 397
    assert sum(counts[k][k] for k in range(10)) / 397 == pytest.approx(report["test_accuracy"])
    assert len(report["class_accuracy"]) == 10 and 0 <= report["calibration_error"] <= 1
    assert report["model"] == "digits_r4_sa" and report["group"] == "R4" and report["epochs"] == 2
    assert metrics == {
        name: report[name.replace("/", "_")]
        for name in ("val/accuracy", "val/balanced_accuracy", "test/accuracy", "test/balanced_accuracy")
    }
    balanced = sum(report["class_accuracy"].values()) / 10
    assert balanced == pytest.approx(report["test_balanced_accuracy"]) != pytest.approx(report["test_accuracy"])
    assert report["parameters"] == sum(p.numel() for p in objects["network"].parameters())
    assert report["split"] == {"train": 1200, "val": 200, "test": 397}
    assert report["used"] == {"train": 4 * 16, "val": 200, "test": 397}
    errors = report["equivariance_error"]
    assert [e["exact"] for e in errors.values()] == [True] * 4 and max(e["error"] for e in errors.values()) < 1e-5
    pictures = {"learning", "angles", "orbit", "encodings", "attention", "confusion", "mistakes", "symmetry"}
    assert {p.stem for p in folder.glob("*.png")} == pictures
    assert (folder / "csv" / "version_0" / "metrics.csv").exists() and (folder / "config.yaml").exists()
    assert "digits_r4_sa" in (folder / "report.txt").read_text()


def test_the_best_weights_are_kept(small, tmp_path):
    _, objects = train(small("trainer.max_epochs=4", "optimizer.lr=0.05"))
    rank = [(row["val/accuracy"], -row["val/loss"]) for row in objects["history"]]
    assert objects["report"]["val_accuracy"] == max(rank)[0]
    best = read_checkpoint(tmp_path / "run" / "checkpoints" / "best.ckpt")
    assert best["epoch"] == objects["report"]["best_epoch"] == rank.index(max(rank))
    assert f"weights of epoch {best['epoch'] + 1} of 4\n" in (tmp_path / "run" / "report.txt").read_text()
    for name, value in objects["network"].state_dict().items():
        assert torch.equal(value, best["state_dict"][f"network.{name}"])


def outcome(objects):
    last = Path(objects["folder"]) / "checkpoints" / "last.ckpt"
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in objects["history"]]
    return read_checkpoint(last)["state_dict"], rows, objects["report"]["test_accuracy"]


DROPOUT = ("model.attention_dropout=0.2", "model.value_dropout=0.2", "model.dropout=0.2", "data.augmentation=[turns]")


def test_what_a_run_says_of_pictures_as_they_were_read_is_what_its_network_says_of_normalised_ones(small):
    run = build(small("data.eval_batch_size=2"))
    run.data.setup()
    run.network.eval()
    pictures, _ = run.data.parts["test"].first(5)
    with torch.no_grad():
        expected = run.network(run.data.parts["test"].normalise(pictures))
        torch.testing.assert_close(run.logits(pictures), expected)
        assert not torch.allclose(run.network(pictures), expected)


def test_a_run_that_goes_on_and_keeps_no_best_epoch_ends_with_its_last_weights(monkeypatch):
    """Planted: those that it went on from, which are not even there."""
    monkeypatch.setattr(_run, "_write_config", lambda run: None)
    trainer = SimpleNamespace(callbacks=[], fit=lambda *_, **keywords: given.update(keywords), callback_metrics={})
    config, listener = OmegaConf.create({"train": True, "ckpt_path": "nowhere"}), SimpleNamespace(stop_if_told=list)
    given = {}
    run = SimpleNamespace(trainer=trainer, config=config, listener=listener, classifier=None, data=None, best=None)
    assert _run._fit(run) == {} and given["ckpt_path"] == "nowhere"


@pytest.mark.parametrize(
    "extra",
    [
        (),
        ("ema=0.9",),
        pytest.param(("+trainer.max_steps=1000",), marks=pytest.mark.slow),
        pytest.param(("trainer.precision=64-true",), marks=pytest.mark.slow),
        ("data.num_workers=2", "mixup=0.3", "data.augmentation=[randaugment]"),
    ],
)
def test_a_resumed_run_ends_as_if_it_had_not_been_stopped(small, extra):
    options = (*DROPOUT, *extra, "trainer.max_epochs=3")
    weights, rows, accuracy = outcome(train(small(*options, folder="whole"))[1])

    class Stopped(Exception):
        pass

    def stop(trainer, module):
        if trainer.current_epoch == 1:
            raise Stopped

    config = small(*options, folder="parts")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr("gsa.training.Classifier.on_train_epoch_start", lambda m: stop(m.trainer, m))
        train(config)
    last = f"{config.output_dir}/checkpoints/last.ckpt"
    assert read_checkpoint(last)["epoch"] == 0
    torch.manual_seed(99)  # whatever the new process has drawn
    resumed, rows_too, accuracy_too = outcome(train(small(*options, f"ckpt_path='{last}'", folder="parts"))[1])
    assert rows_too == rows and accuracy_too == accuracy
    assert resumed.keys() == weights.keys()
    assert [name for name in weights if not torch.equal(resumed[name], weights[name])] == []


@pytest.mark.slow
def test_a_run_killed_in_mid_epoch_is_resumed_by_the_command(tmp_path):
    """SIGKILL in the second epoch; the same command with ckpt_path ends with the weights of an undisturbed run."""
    command = [sys.executable, str(ROOT / "train.py"), "model=digits_r4_sa", "model.attention_dropout=0.1",
               "model.dropout=0.1", "trainer.max_epochs=3", "trainer.limit_train_batches=20", "report=false",
               "callbacks=quiet", "trainer.accelerator=cpu"]  # fmt: skip
    for folder in ("whole", "killed"):
        process = subprocess.Popen([*command, f"hydra.run.dir={tmp_path / folder}"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        if folder == "whole":
            assert process.wait() == 0
            continue
        last = tmp_path / folder / "checkpoints" / "last.ckpt"
        while not last.exists():
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(0.5)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / folder / "report.json").exists()
        subprocess.run([*command, f"ckpt_path={last}"], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    ends = [read_checkpoint(tmp_path / folder / "checkpoints" / "last.ckpt") for folder in ("whole", "killed")]
    assert ends[0]["epoch"] == ends[1]["epoch"] == 2
    for name, value in ends[0]["state_dict"].items():
        assert torch.equal(value, ends[1]["state_dict"][name]), name
    reports = [json.loads((tmp_path / folder / "report.json").read_text()) for folder in ("whole", "killed")]
    assert reports[0]["test_accuracy"] == reports[1]["test_accuracy"]


def test_another_seed_is_another_run(small):
    first, second = (outcome(train(small(f"seed={seed}", folder=f"{seed}"))[1])[0] for seed in (0, 1))
    assert not torch.equal(first["network.head.weight"], second["network.head.weight"])


def test_seed_null_is_drawn_and_reported(small):
    assert train(small("seed=null"))[1]["report"]["seed"] >= 0


def test_testing_only_gives_what_training_gave(small, tmp_path):
    metrics, _ = train(small())
    best = tmp_path / "run" / "checkpoints" / "best.ckpt"
    again, objects = train(small("train=false", f"ckpt_path='{best}'", folder="test"))
    assert again == metrics and objects["report"]["epochs"] == 0 and objects["report"]["best_epoch"] is None
    assert objects["report"]["used"] == {"train": 0, "val": 200, "test": 397}


@pytest.mark.parametrize("extra", [
    ("trainer.precision=bf16-mixed",),
    ("trainer.precision=64-true", "report=true"),
    ("trainer.accumulate_grad_batches=2", "trainer.gradient_clip_val=1.0"),
    ("debug=fast_dev_run",),
    ("debug=overfit", "trainer.max_epochs=2"),
    ("debug=anomaly",),
    ("debug=profiler", "trainer.limit_train_batches=3"),
    ("callbacks=none",),
])  # fmt: skip
def test_options_run(small, extra, capsys):
    metrics, objects = train(small(*extra))
    assert 0 <= metrics["test/accuracy"] <= 1
    assert all(torch.isfinite(p).all() for p in objects["network"].parameters())
    profiles = [file.name for file in objects["folder"].glob("*profile*")]
    assert ("fit-profile.txt" in profiles) is ("debug=profiler" in extra)
    assert "Profiler Report" not in capsys.readouterr().out


def test_a_network_that_says_the_same_of_everything_before_training_is_trained(small, monkeypatch):
    """As torchvision's transformers do, whose last weights start at zero."""
    silent = []

    def silenced(run):
        if not silent:
            torch.nn.init.zeros_(run.network.head.weight)
            silent.append(symmetry_of(run))
        return symmetry_of(run)

    monkeypatch.setattr("gsa.runner._run.symmetry_of", silenced)
    _, objects = train(small("trainer.max_epochs=1"))
    assert silent[0]["90°"]["error"] == 0 < objects["report"]["equivariance_error"]["90°"]["error"]


def test_tensorboard_and_wandb_log_without_a_network(small, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    train(small("logger=tensorboard"))
    assert list((tmp_path / "run" / "tensorboard").rglob("events.*"))
    train(small("logger=wandb", folder="wandb"))
    _, records = read_back(tmp_path / "wandb")
    assert any("val/accuracy" in row["item"] for row in of_type(records, "history"))


def test_a_missing_checkpoint_and_missing_data_are_named(small):
    with pytest.raises(ConfigError, match=r"there is no checkpoint at .*nowhere.ckpt"):
        train(small("ckpt_path=nowhere.ckpt"))
    with pytest.raises(ConfigError, match=r"data.source=mnist"):
        train(small("data=rotmnist", "model=rotmnist_z2_sa", "data.root=nowhere"))


def test_a_logger_that_is_not_installed_is_refused(small, tmp_path, monkeypatch):
    def missing(*arguments, **keywords):
        raise ModuleNotFoundError("no tensorboard: planted")

    monkeypatch.setattr("lightning.pytorch.loggers.TensorBoardLogger.__init__", missing)
    with pytest.raises(ConfigError, match="no tensorboard: planted"):
        train(small("logger=tensorboard"))
    assert not (tmp_path / "run").exists()
    (tmp_path / "run" / "mine").mkdir(parents=True)
    with pytest.raises(ConfigError, match="no tensorboard: planted"):
        train(small("logger=tensorboard"))
    assert (tmp_path / "run" / "mine").exists()  # a folder that was there before is not taken away


def test_labels_and_colours_follow_the_data(small):
    with pytest.raises(ConfigError, match="model.num_classes is that of the data"):
        train(small("+model.num_classes=5"))


@pytest.mark.slow
def test_the_command_resumes_in_its_own_folder(tmp_path):
    short = ["model=digits_z2_sa", "model.channels=4", "model.num_heads=1", "trainer.limit_train_batches=2",
             "report=false", "trainer.accelerator=cpu"]  # fmt: skip

    def command(*arguments):
        return subprocess.run([sys.executable, str(ROOT / "train.py"), *short, *arguments], cwd=tmp_path, text=True,
                              capture_output=True, check=True, stdin=subprocess.DEVNULL)  # fmt: skip

    done = command("trainer.max_epochs=1")
    (folder,) = tmp_path.glob("outputs/digits/digits_z2_sa/*")
    assert "test" in done.stdout and "litlogger" not in done.stdout + done.stderr
    assert "Warning" not in done.stderr
    command("trainer.max_epochs=2", f"ckpt_path={folder}/checkpoints/last.ckpt")
    assert list(tmp_path.glob("outputs/digits/digits_z2_sa/*")) == [folder]
    assert json.loads((folder / "report.json").read_text())["epochs"] == 2


@pytest.mark.slow
def test_the_main_job_learns_and_is_exactly_invariant(tmp_path):
    command = [sys.executable, str(ROOT / "train.py")]
    subprocess.run(command, cwd=tmp_path, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    (file,) = tmp_path.glob("outputs/digits/digits_gsa/*/report.json")
    report = json.loads(file.read_text())
    assert report["test_accuracy"] >= 0.95
    assert max(e["error"] for e in report["equivariance_error"].values() if e["exact"]) <= 1e-5
