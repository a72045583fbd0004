"""What a run is made of, in anybody's trainer: with other data, other modules, without a configuration."""

import signal
from contextlib import suppress
from datetime import timedelta
from functools import partial

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import (
    Callback,
    Checkpoint,
    EarlyStopping,
    GradientAccumulationScheduler,
)
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset, default_collate

from gsa.data import DigitsDataModule, completed
from gsa.training import (
    Classifier,
    History,
    LastCheckpoint,
    SaveOnSignal,
    Stopped,
    constant,
    muon,
    sort_parameters,
    warmup_cosine,
)

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


class Plain(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = network()

    def training_step(self, batch, index):
        return nn.functional.cross_entropy(self.network(batch[0]), batch[1])

    def configure_optimizers(self):
        return AdamW(self.parameters(), lr=0.01)


@pytest.mark.parametrize("saves", ["when it is told", "after every step"])
@pytest.mark.parametrize("make", ["ours", "anybody's"])
def test_an_epoch_that_goes_on_accumulates_as_it_began(tmp_path, make, saves):
    class Stop(Callback):
        def on_train_batch_start(self, trainer, module, batch, index):
            place = (trainer.current_epoch, index)
            if saves == "after every step" and place == (1, 4):  # between the second step and its end
                raise KeyError
            if saves == "when it is told" and place == (1, 1):  # it saves once the first step is whole
                signal.raise_signal(signal.SIGTERM)

    weights = []
    for name, stop in (("whole", []), ("stopped", [Stop()]), ("stopped", [])):
        last = tmp_path / name / "last.ckpt"
        often = LastCheckpoint(last.parent, "last", train_time_interval=timedelta(0), enable_version_counter=False)
        listener = SaveOnSignal(str(last.parent))
        saver = often if saves == "after every step" else listener
        torch.manual_seed(0)
        module, resumed = classifier() if make == "ours" else Plain(), last if last.exists() else None
        runner = trainer(tmp_path, saver, GradientAccumulationScheduler({0: 1, 1: 3}), *stop)
        with listener.listening(), suppress(KeyError, Stopped):
            runner.fit(module, digits(), ckpt_path=resumed)
        if not stop:
            weights.append(next(iter(module.parameters())))
            assert runner.global_step == 6 + 2
    assert torch.equal(*weights)


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


def test_a_classifier_is_loaded_from_a_checkpoint(tmp_path):
    runner = trainer(tmp_path, max_epochs=1)
    runner.fit(module := classifier(), digits())
    runner.save_checkpoint(tmp_path / "a.ckpt")
    rules = {"optimizer": partial(AdamW, lr=0.01), "scheduler": warmup_cosine}
    again = Classifier.load_from_checkpoint(
        tmp_path / "a.ckpt", network=network(), num_classes=10, **rules, weights_only=False
    )
    assert torch.equal(again.network[1].weight, module.network[1].weight)


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
