"""Runs go on where they stood, as they began, one process in a folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch.callbacks import timer
from omegaconf import OmegaConf
from torch import nn

import gsa
from gsa.encodings import QuadraticEncoding
from gsa.runner import ConfigError, build, train
from gsa.runner._config_file import read_config
from gsa.runner._dotted import values_of
from gsa.runner._fitting import refuse_other_training, refuse_unfit
from gsa.runner._folder import TakenAway, held
from gsa.runner._metrics import of_report
from gsa.runner._resume import finished_report
from gsa.saved import export, read
from gsa.training import Stopped
from gsa.training._older_states import without_empty
from tests.runner.faults import act_in
from tests.runner.test_run import DROPOUT, outcome
from tests.runs import of_few_steps


def test_auto_starts_resumes_and_skips(small, tmp_path, capsys):
    options = (*DROPOUT, "trainer.max_epochs=2", "ckpt_path=auto")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        act_in(patch, 1, 0, lambda module: os.kill(os.getpid(), signal.SIGTERM))
        train(small(*options))
    assert "starting anew" in capsys.readouterr().out
    metrics, _ = train(small(*options))
    assert "going on from" in capsys.readouterr().out
    checkpoint = tmp_path / "run" / "checkpoints" / "last.ckpt"
    written = checkpoint.stat().st_mtime_ns
    again, objects = train(small(*options))
    assert "finished already" in capsys.readouterr().out and again == metrics
    assert checkpoint.stat().st_mtime_ns == written and objects["report"]["epochs"] == 2
    longer = r"values of trainer.max_epochs \(2 there\): .* another folder \(.*\), or go on .* ckpt_path=.*last.ckpt"
    with pytest.raises(ValueError, match=longer):
        train(small(*DROPOUT, "trainer.max_epochs=3", "ckpt_path=auto"))
    with pytest.raises(
        ValueError, match=r"values of optimizer.lr \(0.\d+ there\): give .*, or choose another folder \([^)]*\)$"
    ):
        train(small(*options, "optimizer.lr=0.5"))


def test_a_best_epoch_that_is_lost_is_told_of_before_more_is_trained(small, tmp_path):
    best = tmp_path / "run" / "checkpoints" / "best.ckpt"
    train(small("trainer.max_epochs=2", "scheduler=constant"))
    longer = small("trainer.max_epochs=3", "scheduler=constant", f"ckpt_path={best.with_name('last.ckpt')}")
    whole = best.read_bytes()
    best.write_bytes(whole[:999] + bytes([whole[999] ^ 1]) + whole[1000:])
    with pytest.raises(ConfigError, match=r"remembers \(val/accuracy 0.*its content has"):
        train(longer)
    best.write_bytes(whole)
    train(longer)
    best.unlink()
    longer.trainer.max_epochs = 4
    with pytest.warns(UserWarning, match=r"remembers \(val/accuracy 0.* is not in .*: of the epochs from here"):
        _, objects = train(longer)
    assert objects["report"]["best_epoch"] == 3


def test_a_run_whose_folder_is_taken_away_writes_nothing_into_that_of_the_next(small, tmp_path):
    folder = tmp_path / "run"

    def replace(module):
        shutil.rmtree(folder)
        (folder / "checkpoints").mkdir(parents=True)

    for part, epochs in (("training", 2), ("test", 1)):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(TakenAway, match="removed, moved or replaced"):
            act_in(patch, 1, 0, replace, part)
            train(small(f"trainer.max_epochs={epochs}"))
        assert [*folder.rglob("*")] == [folder / "checkpoints"]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(TakenAway):
        act_in(patch, 1, 0, lambda module: folder.rename(tmp_path / "moved"))
        train(small("trainer.max_epochs=2"))
    assert not folder.exists() and (tmp_path / "moved" / "checkpoints" / "last.ckpt").exists()


def test_auto_takes_no_run_for_one_with_other_callbacks(small):
    """But for those that change nothing of it, such as a bar."""
    early = "callbacks=early_stopping", "trainer.max_epochs=1", "ckpt_path=auto"
    _, before = train(small(*early, "callbacks.early_stopping.patience=1"))
    _, again = train(small(*early, "callbacks.early_stopping.patience=1", "~callbacks.progress"))
    assert again["report"] == before["report"]
    with pytest.raises(ConfigError, match=r"other values of callbacks\.early_stopping\.patience"):
        train(small(*early, "callbacks.early_stopping.patience=2"))


def test_auto_passes_over_damage_and_says_so(small, tmp_path, capsys):
    options = ("trainer.max_epochs=2", "ckpt_path=auto")
    train(small(*options))
    folder = tmp_path / "run"
    (folder / "report.json").unlink()
    last = folder / "checkpoints" / "last.ckpt"
    last.write_bytes(last.read_bytes()[:-1000])
    train(small(*options))
    text = capsys.readouterr().out
    assert "passed over" in text and "last.ckpt is not a whole checkpoint" in text and "going on from" in text
    assert json.loads((folder / "report.json").read_text())["epochs"] == 2


def test_auto_does_not_begin_anew_over_damage(small, tmp_path):
    train(small("trainer.max_epochs=1"))
    (tmp_path / "run" / "report.json").unlink()
    for file in (tmp_path / "run" / "checkpoints").iterdir():
        file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(ConfigError, match="no checkpoint of the run in .* is whole"):
        train(small("trainer.max_epochs=1", "ckpt_path=auto"))


def test_a_folder_and_an_export_are_no_checkpoints_but_say_what_is(small, tmp_path):
    _, objects = train(small("trainer.max_epochs=1"))
    folder, exported = objects["folder"], tmp_path / "exported"
    export(read(folder), exported)
    for more, name in ((), "last"), (("train=false",), "best"):
        with pytest.raises(ConfigError, match=f"set ckpt_path={folder}/checkpoints/{name}.ckpt"):
            build(small(f"ckpt_path={folder}", *more))
    for path in exported, exported / "model.safetensors":
        with pytest.raises(ConfigError, match="is an export, of weights only; in Python") as refused:
            build(small(f"ckpt_path={path}"))
    said = {"gsa": gsa, "config": small("trainer.max_epochs=1", "optimizer.lr=0", "ema=null", folder="second")}
    exec(str(refused.value).partition("begins with them: ")[2], said)
    expected = gsa.load(exported).state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in said["run"].network.named_parameters())
    assert (tmp_path / "second" / "report.json").is_file()


def test_auto_refuses_the_checkpoint_of_another_run(small, tmp_path):
    train(small("trainer.max_epochs=1"))
    with pytest.raises(ConfigError, match=r"other values of optimizer\.lr"):
        train(small("trainer.max_epochs=1", "optimizer.lr=0.5", "ckpt_path=auto"))
    (tmp_path / "run" / "report.json").unlink()  # it had not finished
    (tmp_path / "run" / "config.yaml").unlink()
    with pytest.raises(ConfigError, match=r"other values of data.seed .*, seed"):
        train(small("trainer.max_epochs=1", "seed=3", "ckpt_path=auto"))


def test_a_run_that_goes_on_has_no_report_until_it_ends(small, tmp_path):
    train(small("scheduler=constant", "trainer.max_epochs=1"))
    longer = ("scheduler=constant", "trainer.max_epochs=2", f"ckpt_path='{tmp_path}/run/checkpoints/last.ckpt'")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyError):
        act_in(patch, 1, 1, lambda module: {}["planted"])
        train(small(*longer))
    assert not (tmp_path / "run" / "report.json").exists()
    assert read_config(tmp_path / "run" / "config.yaml").trainer.max_epochs == 2


def test_a_resumption_that_cannot_be_leaves_the_run_as_it_was(small, tmp_path):
    """Fewer epochs than there are; and whatever Lightning makes of a checkpoint."""
    folder, last = tmp_path / "run", tmp_path / "run" / "checkpoints" / "last.ckpt"
    train(small("scheduler=constant"))
    before = [(folder / name).read_bytes() for name in ("config.yaml", "report.json")]
    with pytest.raises(ConfigError, match="max_epochs must be at least the 2 epochs that .* has begun, but got 1"):
        train(small("scheduler=constant", "trainer.max_epochs=1", f"ckpt_path='{last}'"))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyError):
        patch.setattr("gsa.training.Classifier.on_load_checkpoint", lambda *_: {}["planted"])
        train(small("scheduler=constant", "trainer.max_epochs=3", f"ckpt_path='{last}'"))
    assert [(folder / name).read_bytes() for name in ("config.yaml", "report.json")] == before
    assert finished_report(small("scheduler=constant", "ckpt_path=auto")) is not None


@pytest.mark.parametrize("file", ["report.json", "checkpoints/last.ckpt"])
def test_a_run_takes_the_place_of_no_other(small, tmp_path, file):
    """Neither a new one, nor one that goes on from elsewhere, nor a test; only tests may be made again."""
    train(small("trainer.max_epochs=1", folder="first"))
    last, taken = tmp_path / "first" / "checkpoints" / "last.ckpt", tmp_path / "run" / file
    taken.parent.mkdir(parents=True)
    shutil.copy(tmp_path / "first" / file, taken)
    for options in (["seed=5"], [f"ckpt_path='{last}'"]):
        with pytest.raises(ConfigError, match=r"run holds a run already: ckpt_path=auto goes on with it, or choose an"):
            train(small(*options))
    with pytest.raises(ConfigError, match=r"run holds a run already: choose another folder \(output_dir\)"):
        train(small("train=false", f"ckpt_path='{last}'"))
    for _ in range(2):
        train(small("train=false", f"ckpt_path='{last}'", folder="tested"))


def test_a_run_that_time_has_ended_goes_on_with_more_and_ends_as_one_that_had_it(small, tmp_path, monkeypatch, capsys):
    """Every look at the clock takes a minute: at the end of an epoch, never within one."""
    passed = iter(range(0, 10_000_000, 60))
    monkeypatch.setattr(timer, "time", SimpleNamespace(monotonic=lambda: next(passed)))
    limited = "ckpt_path=auto", "trainer.max_epochs=3", "trainer.limit_train_batches=9"
    _, first = train(small(*limited, "+trainer.max_time=00:00:00:30"))
    assert first["report"]["epochs"] == 1
    assert train(small(*limited, "+trainer.max_time=00:00:00:30"))[1].keys() == {"report", "folder"}  # finished
    _, last = train(small(*limited))
    assert last["report"]["epochs"] == 3 and "going on from" in capsys.readouterr().out
    assert train(small(*limited, "+trainer.max_time=00:00:00:30"))[1]["report"] == last["report"]  # was finished
    _, whole = train(small(*limited, folder="whole"))
    found, expected = (objects["network"].state_dict() for objects in (last, whole))
    assert all(torch.equal(found[name], value) for name, value in expected.items())


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """The checkpoint of a run of one epoch."""
    folder = tmp_path_factory.mktemp("begun")
    train(of_few_steps("trainer.max_epochs=1", folder=folder))
    return folder / "checkpoints" / "last.ckpt"


REPORT = {"val_accuracy": 0.5, "test_accuracy": None}  # without a digest, as earlier versions have written it


def test_a_finished_run_returns_what_it_was_measured_to():
    report = {"val_accuracy": 0.5, "test_accuracy": None, "test_auroc": 0.7, "epochs": 2}
    assert of_report(report) == {"val/accuracy": 0.5, "test/auroc": 0.7}


@pytest.mark.parametrize("changed", [
    "data.num_workers=1", "data.root=elsewhere", "objective=test/accuracy", "trainer.enable_progress_bar=true",
    "logger=csv", "data.eval_batch_size=7", "+trainer.max_time=null", "seed=null",
])  # fmt: skip
def test_auto_goes_on_whatever_changes_neither_weights_nor_metrics(configure, tmp_path, changed):
    """Planted: a key that does change them."""
    (tmp_path / "run").mkdir()
    config = configure("model=rotmnist_z2_sa", "ckpt_path=auto")
    (tmp_path / "run" / "config.yaml").write_text(OmegaConf.to_yaml(config, resolve=True))
    (tmp_path / "run" / "report.json").write_text(json.dumps(REPORT))
    assert finished_report(configure("model=rotmnist_z2_sa", "ckpt_path=auto", changed)) == REPORT
    with pytest.raises(ConfigError, match=r"data\.split_seed"):
        finished_report(configure("model=rotmnist_z2_sa", "ckpt_path=auto", "data.split_seed=3"))


@pytest.mark.parametrize("field, value", [("group", "Z2M"), ("num_heads", 2), ("neighbourhood", 5), ("form", "summed")])
@pytest.mark.parametrize("training", [True, False])
def test_a_checkpoint_of_another_network_is_refused_by_its_fields(small, begun, field, value, training):
    with pytest.raises(ValueError, match=rf"another network; .* {field} \(.* there, {value!r} here\)"):
        train(small(f"model.{field}={value}", f"ckpt_path='{begun}'", f"train={training}".lower()))


def test_a_training_goes_on_with_its_dropout_alone(configure):
    """Which a test has none of."""
    before = {"hyper_parameters": {"run": values_of(configure())}}
    config = configure("model.dropout=0.7", "ckpt_path=last.ckpt")
    run = SimpleNamespace(config=config, data=None, network=SimpleNamespace(training_only=("dropout",)))
    with pytest.raises(ValueError, match=r"another network; .* dropout \(.* there, 0.7 here\)"):
        refuse_unfit(before, run)


@pytest.mark.parametrize("changed, key", [
    ("seed=3", "seed"), ("optimizer.lr=0.5", "optimizer.lr"), ("ema=null", "ema"),
    ("data.batch_size=8", "data.batch_size"), ("trainer.gradient_clip_val=0.5", "trainer.gradient_clip_val"),
    ("trainer.limit_train_batches=5", "trainer.limit_train_batches"),
    ("trainer.limit_val_batches=1", "trainer.limit_val_batches"),
    ("trainer.overfit_batches=2", "trainer.overfit_batches"),
    ("+trainer.gradient_clip_algorithm=value", "trainer.gradient_clip_algorithm"),
])  # fmt: skip
def test_a_run_goes_on_as_it_began_or_not_at_all(small, begun, changed, key):
    with pytest.raises(ConfigError, match=rf"trained with other values: .*{key} \("):
        train(small(f"ckpt_path='{begun}'", changed))
    train(small(f"ckpt_path='{begun}'", "train=false", changed, folder="tested"))  # which changes nothing


def test_no_more_steps_than_there_are_already_are_refused(configure):
    config = configure("+trainer.max_steps=9")
    checkpoint = {"hyper_parameters": {"run": values_of(config)}, "global_step": 8}
    refuse_other_training(checkpoint, config)
    config.trainer.max_steps = 8  # to be tested
    refuse_other_training(checkpoint, config)
    config.trainer.max_steps = 7
    with pytest.raises(ValueError, match="trainer.max_steps must be at least the 8 steps .* but got 7;"):
        refuse_other_training(checkpoint, config)


def test_a_run_on_rotmnist_from_before_clutter_goes_on(configure):
    config = configure("model=rotmnist_gsa", "data.source=mnist")
    before = OmegaConf.to_container(config, resolve=True)
    del before["data"]["clutter"], before["data"]["occlusion"]
    refuse_other_training({"hyper_parameters": {"run": before}}, config)
    config.data.clutter = 4
    with pytest.raises(ValueError, match=r"data.clutter \(0 there, 4 here\)"):
        refuse_other_training({"hyper_parameters": {"run": before}}, config)


def test_a_folder_that_has_moved_is_still_the_same_run(small, tmp_path, capsys):
    train(small("trainer.max_epochs=1"))
    (tmp_path / "run").rename(tmp_path / "moved")
    train(small("trainer.max_epochs=1", "ckpt_path=auto", folder="moved"))
    assert "finished already" in capsys.readouterr().out


@pytest.mark.parametrize(
    "how", ["moved", *(pytest.param(how, marks=pytest.mark.slow) for how in ("copied", "elsewhere"))]
)
def test_a_run_goes_on_in_another_folder(small, tmp_path, how):
    """The best epoch is one of before the move, as no later one is validated on anything that it gets right."""
    options = (*DROPOUT, "trainer.max_epochs=3")
    whole = train(small(*options, folder="whole"))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        act_in(patch, 2, 1, lambda module: os.kill(os.getpid(), signal.SIGTERM))
        train(small(*options))
    old, new = tmp_path / "run", tmp_path / "new"
    last = old / "checkpoints" / "last.ckpt"
    if how != "elsewhere":
        shutil.copytree(old, new)
        last = new / "checkpoints" / "last.ckpt"
    if how == "moved":
        shutil.rmtree(old)
    metrics, objects = train(small(*options, f"ckpt_path='{last}'", folder="new"))
    assert metrics == whole[0] and outcome(objects)[1] == outcome(whole[1])[1]
    best = objects["trainer"].checkpoint_callbacks[0]
    assert best.monitor and Path(best.best_model_path) == new / "checkpoints" / "best.ckpt"
    if how != "moved":
        assert (old / "checkpoints" / "best.ckpt").exists()


def test_what_a_killed_process_was_writing_is_taken_away(tmp_path):
    left = [tmp_path / ".report.json.1.part", tmp_path / "checkpoints" / ".last.ckpt.1.part"]
    left[1].parent.mkdir()
    for file in left:
        file.touch()
    with held(tmp_path):
        assert not any(file.exists() for file in left)


def test_one_process_works_in_a_folder(small, tmp_path):
    """Planted: once the owner has died, although what it has started lives on."""
    (tmp_path / "run").mkdir()
    owner = subprocess.Popen(
        [sys.executable, "-c", "import os, sys, time; from pathlib import Path; from gsa.runner._folder import held\n"
         "with held(Path(sys.argv[1])):\n os.fork() and print('held', flush=True); time.sleep(60)", tmp_path / "run"],
        stdout=subprocess.PIPE, process_group=0,
    )  # fmt: skip
    try:
        assert owner.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match=rf"another process \({owner.pid} on .*\) is at work on the run in .*run"):
            train(small("trainer.max_epochs=1"))
        owner.kill()
        owner.wait()
        train(small("trainer.max_epochs=1"))
    finally:
        os.killpg(owner.pid, signal.SIGKILL)
        owner.wait()
        owner.stdout.close()


@pytest.mark.parametrize("optimizer", ["muon", "adamw", "sgd"])
def test_a_run_goes_on_whose_lifting_layer_had_a_parameter_of_no_numbers(small, tmp_path, monkeypatch, optimizer):
    quadratic = ("model.num_heads=2", "model.head_dim=4", "model.encoding=quadratic")
    options = (*quadratic, f"optimizer={optimizer}", "scheduler=constant")
    options += ("optimizer.momentum=0",) if optimizer == "sgd" else ()  # and nothing is remembered
    whole = train(small(*options, folder="whole"))[1]["network"]
    make = QuadraticEncoding.__init__

    def as_before(self, *arguments, **keywords):
        make(self, *arguments, **keywords)
        if "preference" in self._buffers:
            self.preference = nn.Parameter(self._buffers.pop("preference"))

    with monkeypatch.context() as patch:
        patch.setattr(QuadraticEncoding, "__init__", as_before)
        begun = train(small(*options, "trainer.max_epochs=1"))[1]
        assert any(not p.numel() for p in begun["network"].parameters())
    last = f"ckpt_path='{tmp_path}/run/checkpoints/last.ckpt'"
    with monkeypatch.context() as patch, pytest.raises(ValueError, match="doesn't match the size"):
        patch.setattr("gsa.training._classifier.without_empty", lambda state, count: state)  # planted
        train(small(*options, last))
    gone_on = train(small(*options, last))[1]["network"]
    assert all(map(torch.equal, gone_on.state_dict().values(), whole.state_dict().values()))


def test_of_parameters_without_a_gradient_the_one_of_no_numbers_is_left_out():
    """As those of version 0.4, whose optimizers remembered the others. Planted: as many as there are, or none is."""
    groups = [{"params": [0, 1], "lr": 0.1}, {"params": [2, 3], "lr": 0.2}]
    state = {"state": {index: {"step": torch.ones(())} for index in (0, 1, 3)}, "param_groups": groups}
    assert without_empty(state, 4) == state
    mended = without_empty(state, 3)
    assert [group["params"] for group in mended["param_groups"]] == [[0, 1], [3]]
    assert mended["state"] == state["state"]
