"""Callbacks in anybody's trainer: checkpoints, steps that are left out, histories, listeners."""

import signal
import warnings
from pathlib import Path

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import (
    ModelCheckpoint,
)
from torch import nn
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from gsa.saved import read_checkpoint, write_checkpoint
from gsa.training import (
    BestCheckpoint,
    Classifier,
    FiniteSteps,
    History,
    MovedRuns,
    NotFinite,
    SafeCheckpointIO,
    SaveOnSignal,
    constant,
)
from gsa.training._moved_runs import _moved
from tests.training.test_own_trainer import Own, classifier, digits, trainer

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice on workers, loggers, and so on


def test_a_checkpoint_that_is_tested_replaces_none(tmp_path):
    """Planted: one that is gone on with, whose best weights are copied."""

    def best(folder):
        return ModelCheckpoint(tmp_path / folder, filename="best", monitor="val/accuracy", mode="max")

    data = digits()
    for folder in ("first", "second"):
        runner = trainer(tmp_path, MovedRuns(), best(folder))
        runner.fit(module := classifier(), data)
    first, second = ((tmp_path / folder / "best.ckpt").read_bytes() for folder in ("first", "second"))
    runner.test(module, data, ckpt_path=tmp_path / "first" / "best.ckpt", weights_only=False)
    assert (tmp_path / "second" / "best.ckpt").read_bytes() == second != first
    runner = trainer(tmp_path, MovedRuns(), best("third"), max_epochs=3)
    runner.fit(classifier(), data, ckpt_path=tmp_path / "first" / "best.ckpt", weights_only=False)
    assert (tmp_path / "third" / "best.ckpt").exists()


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    write_checkpoint({"state_dict": {}, "hyper_parameters": {"root": "x"}}, tmp_path / "a.ckpt")
    with pytest.raises(ValueError, match=r"such as pathlib.*PosixPath, and could not be read again; .* as numbers"):
        write_checkpoint({"state_dict": {}, "hyper_parameters": {"root": Path("x")}}, tmp_path / "a.ckpt")
    assert read_checkpoint(tmp_path / "a.ckpt")["hyper_parameters"] == {"root": "x"}
    runner = lightning.Trainer(plugins=[SafeCheckpointIO()], logger=False, enable_checkpointing=False)
    runner.strategy.connect(classifier(config={"root": Path("x")}))
    with pytest.raises(ValueError, match="could not be read again"):
        runner.strategy.checkpoint_io.save_checkpoint({"state_dict": {}, "x": Path("x")}, tmp_path / "b.ckpt")
    assert not (tmp_path / "b.ckpt").exists()


def test_steps_of_another_module_are_left_out_and_named(tmp_path):
    """Its batches are dictionaries, its network has another name, and its mask was never finite."""
    trainer(tmp_path, FiniteSteps()).fit(Own())
    with pytest.raises(NotFinite, match=r"3 steps in a row .* of epoch 0: the loss\. The weights"):
        trainer(tmp_path, FiniteSteps()).fit(Own(broken_from=1))
    planted = Own()
    planted.register_buffer("late", torch.zeros(()))
    planted.on_train_batch_end = lambda outputs, batch, index: planted.late.fill_(torch.inf)
    with pytest.raises(NotFinite, match="late is not finite"):
        trainer(tmp_path, FiniteSteps()).fit(planted)


def test_steps_that_are_left_out_are_counted(tmp_path):
    pictures = torch.rand(60, 1, 12, 12)
    pictures[33] = torch.nan
    data = DataLoader(TensorDataset(pictures, torch.arange(60) % 10), 10)
    with pytest.warns(UserWarning, match="steps of epoch 1 left out, .* not finite: 1$") as told:
        trainer(tmp_path, FiniteSteps()).fit(classifier(), data)
    assert sum("left out" in str(one.message) for one in told) == 2


class Overflowing(nn.Module):
    def forward(self, x):
        return x.where(x <= 1, torch.inf)


def test_running_statistics_are_those_before_the_bad_steps(tmp_path):
    """The forward pass that looks for the first bad module leaves none either; planted: one that is not put back."""
    pictures = torch.rand(60, 1, 12, 12)
    pictures[30:] += 1
    data = DataLoader(TensorDataset(pictures, torch.arange(60) % 10), 10)
    made = nn.Sequential(Overflowing(), norm := nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(144, 10))
    with pytest.raises(NotFinite, match=r"the output of 0 \(Overflowing\)"):
        trainer(tmp_path, FiniteSteps()).fit(Classifier(made, 10, AdamW, constant), data)
    assert norm.running_mean.isfinite().all() and norm.running_var.isfinite().all()
    made(pictures[30:])
    assert not norm.running_mean.isfinite().all()


def test_an_epoch_without_validation_has_none_in_its_history(tmp_path):
    history = History()
    trainer(tmp_path, history, max_epochs=4, check_val_every_n_epoch=2).fit(classifier(), digits())
    assert ["val/accuracy" in row for row in history.rows] == [False, True, False, True]
    assert all("train/loss" in row for row in history.rows)


def test_a_listener_that_does_not_listen_says_so_and_leaves_signals_to_lightning(tmp_path):
    listener = SaveOnSignal(str(tmp_path))
    with pytest.warns(UserWarning, match=r"hears inside listening\(\) only"):
        trainer(tmp_path, listener, max_epochs=1).fit(classifier(), digits())
    with warnings.catch_warnings():  # there is nothing to save
        warnings.filterwarnings("error", "a signal will not save")
        trainer(tmp_path, listener).test(classifier(), digits(), verbose=False)
    before = signal.getsignal(signal.SIGTERM)
    with listener.listening():
        assert signal.getsignal(signal.SIGTERM) == listener._receive
        trainer(tmp_path, listener, max_epochs=1).fit(classifier(), digits())
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("order", [1, -1])
def test_a_listener_is_no_checkpoint_and_comes_last(tmp_path, order):
    """The best weights are those of the callback that chooses them, in whatever order they are given."""
    listener, best = SaveOnSignal(str(tmp_path)), BestCheckpoint(dirpath=str(tmp_path), monitor="val/accuracy")
    runner = trainer(tmp_path, *[listener, best][::order], max_epochs=1)
    with listener.listening():
        runner.fit(module := classifier(), digits())
        runner.test(module, digits(), ckpt_path="best", weights_only=True, verbose=False)
    assert runner.checkpoint_callback is best and runner.callbacks[-1] is listener
    assert lightning.Trainer(callbacks=[listener], accelerator="cpu", logger=False).checkpoint_callback is not None


def test_the_next_weights_are_the_best_where_those_were_left_behind(tmp_path):
    state = {"best_model_path": "/elsewhere/best.ckpt", "best_model_score": torch.tensor(0.9), "best_k_models": {}}
    assert _moved(state, tmp_path)["best_model_score"] is None
    (tmp_path / "best.ckpt").touch()
    assert _moved(state, tmp_path)["best_model_score"] == 0.9
