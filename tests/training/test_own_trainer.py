"""What a run is made of, in anybody's trainer: with other data, other modules, without a configuration."""

import signal
import warnings
from functools import partial
from pathlib import Path

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Checkpoint, EarlyStopping, GradientAccumulationScheduler, ModelCheckpoint
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset, default_collate

from gsa.data import DigitsDataModule, completed
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
    muon,
    sort_parameters,
    warmup_cosine,
)
from gsa.training._moved_runs import _moved

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice on workers, loggers, and so on


NAMES = ("pictures", "labels")


def loader(count=40, seed=0, shuffle=False):
    random = torch.Generator().manual_seed(seed)
    pictures, labels = torch.rand(count, 1, 12, 12, generator=random), torch.arange(count) % 10
    return DataLoader(TensorDataset(pictures, labels), 10, shuffle=shuffle)


def digits():
    return DigitsDataModule(batch_size=200)


def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(144, 10))


def classifier(scheduler=warmup_cosine, **options):
    return Classifier(network(), 10, partial(AdamW, lr=0.01), scheduler, **options)


def trainer(folder, *callbacks, **options):
    defaults = {"max_epochs": 2, "logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return lightning.Trainer(
        **defaults | options, accelerator="cpu", default_root_dir=folder, callbacks=[*callbacks],
        **({} if any(isinstance(c, Checkpoint) for c in callbacks) else {"enable_checkpointing": False}),
    )  # fmt: skip


class Own(lightning.LightningModule):
    """Knows nothing of gsa."""

    def __init__(self, broken_from=None):
        super().__init__()
        self.inner, self.broken_from = network(), broken_from
        self.register_buffer("mask", torch.full((3, 3), -torch.inf).triu(1))

    def training_step(self, batch, index):
        pictures, labels = (batch[name] for name in NAMES)
        loss = nn.functional.cross_entropy(self.inner(pictures), labels)
        return loss * torch.nan if self.broken_from is not None and index >= self.broken_from else loss

    def train_dataloader(self):
        return DataLoader(
            loader().dataset, 10, collate_fn=lambda rows: dict(zip(NAMES, default_collate(rows), strict=True))
        )

    def configure_optimizers(self):
        return AdamW(self.parameters(), lr=0.01)


class Rates(lightning.Callback):
    def on_train_batch_start(self, trainer, module, batch, index):
        self.seen = [*getattr(self, "seen", []), trainer.optimizers[0].param_groups[0]["lr"]]


@pytest.mark.parametrize("options", [{"max_epochs": 3}, {"max_epochs": -1, "max_steps": 12}])
def test_it_trains_on_loaders_over_the_length_of_the_run(tmp_path, options):
    rates, module = Rates(), classifier()
    runner = trainer(tmp_path, rates, **options)
    runner.fit(module, loader(shuffle=True), loader())
    assert len(rates.seen) == 12 and min(rates.seen[2:]) > 0 and rates.seen[-1] < 0.002
    runner.validate(module, loader())
    runner.test(module, loader())
    assert sum(len(logits) for logits in runner.predict(module, loader())) == 40
    runner.save_checkpoint(tmp_path / "a.ckpt")


def test_a_run_without_an_end_needs_a_schedule_without_one(tmp_path):
    with pytest.raises(ValueError, match="needs the length of the run, its total_steps: expected max_epochs or max_st"):
        trainer(tmp_path, max_epochs=-1).fit(classifier(partial(OneCycleLR, max_lr=0.1)), digits())
    runner = trainer(tmp_path, EarlyStopping("val/loss", stopping_threshold=99), max_epochs=-1)
    runner.fit(classifier(constant), digits())
    assert runner.global_step == 6


def test_steps_are_counted_as_they_are_accumulated(tmp_path):
    rates = Rates()
    trainer(tmp_path, rates, GradientAccumulationScheduler({0: 1, 1: 3})).fit(classifier(), digits())
    assert len(rates.seen) == 12 and rates.seen[-1] > 0  # six steps, and two of three batches each


def test_validation_before_training_changes_nothing_that_cannot_be_changed_later(tmp_path):
    module, data = classifier(), digits()
    trainer(tmp_path).validate(module, data)
    trainer(tmp_path).fit(module, data)
    assert len(trainer(tmp_path).predict(module, data)) == 2


def test_several_loaders_are_refused(tmp_path):
    with pytest.raises(ValueError, match="judged on one loader, but val has several"):
        trainer(tmp_path).fit(classifier(), loader(), [loader(), loader()])


def test_weights_of_classes_need_data_that_are_counted(tmp_path):
    from gsa.training import TrainingLoss

    with pytest.raises(ValueError, match=r"gsa\.data\.completed\(your_data, seed\), but got NoneType"):
        trainer(tmp_path).fit(classifier(loss=TrainingLoss(10, balanced=True)), loader(), loader())


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


def test_a_classifier_is_loaded_from_a_checkpoint(tmp_path):
    runner = trainer(tmp_path, max_epochs=1)
    runner.fit(module := classifier(), digits())
    runner.save_checkpoint(tmp_path / "a.ckpt")
    rules = {"optimizer": partial(AdamW, lr=0.01), "scheduler": warmup_cosine}
    again = Classifier.load_from_checkpoint(
        tmp_path / "a.ckpt", network=network(), num_classes=10, **rules, weights_only=False
    )
    assert torch.equal(again.network[1].weight, module.network[1].weight)


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
    with pytest.raises(NotFinite, match=r"3 steps in a row .* the gradient of inner\.1\.weight"):
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


def test_running_statistics_are_those_before_the_bad_steps(tmp_path):
    """The forward pass that looks for the first bad module leaves none either; planted: one that is not put back."""
    pictures = torch.rand(60, 1, 12, 12)
    pictures[30:] = torch.inf
    data = DataLoader(TensorDataset(pictures, torch.arange(60) % 10), 10)
    made = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(144, 10))
    with pytest.raises(NotFinite, match=r"the output of 0 \(BatchNorm2d\)"):
        trainer(tmp_path, FiniteSteps()).fit(Classifier(made, 10, AdamW, constant), data)
    assert made[0].running_mean.isfinite().all() and made[0].running_var.isfinite().all()
    made(pictures[30:])
    assert not made[0].running_mean.isfinite().all()


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


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

    def get_classifier(self):
        return self.head


def test_heads_of_networks_in_a_module_are_no_matrices():
    module = lightning.LightningModule()
    module.nets = nn.ModuleList([Network(), Network()])
    assert {id(p) for p in sort_parameters(module)["matrices"]} == {id(net.body.weight) for net in module.nets}


def test_parameters_are_no_network():
    with pytest.raises(ValueError, match="expected a network, .* but got generator; .* argument is called network"):
        muon(network().parameters())


class Hooked(lightning.LightningDataModule):
    """Notes which of its hooks are called."""

    num_classes, in_channels, image_size = 10, 1, 12

    def __init__(self):
        super().__init__()
        self.called = set()

    def _loader(self):
        return loader()

    train_dataloader = val_dataloader = test_dataloader = _loader

    def transfer_batch_to_device(self, batch, device, dataloader_idx):
        self.called.add("transfer")
        return super().transfer_batch_to_device(batch, device, dataloader_idx)

    def state_dict(self):
        return {"place": 3}

    def load_state_dict(self, state):
        self.called.add(state["place"])

    def teardown(self, stage):
        self.called.add("teardown")


def test_hooks_of_data_of_ones_own_are_called(tmp_path):
    inner = Hooked()
    data, runner = completed(inner, 0), trainer(tmp_path, max_epochs=1)
    runner.fit(classifier(), data)
    runner.save_checkpoint(tmp_path / "a.ckpt")
    assert inner.called == {"transfer", "teardown"}
    trainer(tmp_path).fit(classifier(constant), data, ckpt_path=tmp_path / "a.ckpt", weights_only=False)
    assert 3 in inner.called


def test_a_second_test_begins_anew(tmp_path):
    module, runner = classifier(), trainer(tmp_path)
    for _ in range(2):
        runner.test(module, digits(), verbose=False)
    assert module.findings.confusion.sum() == len(module.findings.rows) == 397


@pytest.mark.parametrize(
    "options, least, most",
    [
        ({"accumulate_grad_batches": 4}, 1e-4, 9e-3),  # six batches are two steps, the second of fewer
        ({"max_epochs": 3, "max_steps": 12}, 0, 1e-3),  # whichever comes first
        ({"limit_train_batches": 2, "max_epochs": 3}, 0, 1e-3),
    ],
)
def test_the_rate_ends_with_the_training(tmp_path, options, least, most):
    rates = Rates()
    trainer(tmp_path, rates, **options).fit(classifier(), digits())
    assert least < rates.seen[-1] < most


def test_a_training_that_ends_within_an_epoch_knows_what_that_was_like(tmp_path):
    history = History()
    trainer(tmp_path, history, max_epochs=3, max_steps=8).fit(module := classifier(), digits())
    assert ["train/loss" in row for row in history.rows] == [True, True]
    assert history.rows[1]["train/loss"] < history.rows[0]["train/loss"] and not module._seen["train"]


def test_the_next_weights_are_the_best_where_those_were_left_behind(tmp_path):
    state = {"best_model_path": "/elsewhere/best.ckpt", "best_model_score": torch.tensor(0.9), "best_k_models": {}}
    assert _moved(state, tmp_path)["best_model_score"] is None
    (tmp_path / "best.ckpt").touch()
    assert _moved(state, tmp_path)["best_model_score"] == 0.9
