"""What a run goes on from holds whole epochs and whole steps."""

from contextlib import suppress
from datetime import timedelta

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback, GradientAccumulationScheduler, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader

from gsa.training import LastCheckpoint, SafeCheckpointIO
from gsa.training.adapter import batches_done

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning on few workers, and on a folder that is not empty


class Counted(lightning.LightningModule):
    """Twelve steps an epoch; remembers which epochs were validated."""

    def __init__(self):
        super().__init__()
        self.layer, self.validated = nn.Linear(1, 1), []

    def training_step(self, batch, index):
        return self.layer(batch).square().sum()

    def validation_step(self, batch, index):
        self.validated.append(self.current_epoch)

    def on_save_checkpoint(self, checkpoint):
        checkpoint["validated"] = list(self.validated)

    def on_load_checkpoint(self, checkpoint):
        self.validated = checkpoint["validated"]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class Killed(Exception):
    pass


class KillAt(Callback):
    """Ends the run in a hook, as SIGKILL would."""

    def __init__(self, hook, epoch, batch=None):
        def kill(trainer, *_):
            if (
                trainer.current_epoch == epoch
                and not trainer.sanity_checking
                and batch in (None, batches_done(trainer))
            ):
                raise Killed

        setattr(self, hook, kill)


def fit(folder, *callbacks, kind=LastCheckpoint, **options):
    """The module, trained for three epochs or until it is killed; it goes on with what is in the folder."""
    last = kind(folder, filename="last", enable_version_counter=False, **options)
    trainer = lightning.Trainer(
        max_epochs=3, callbacks=[*callbacks, last], accelerator="cpu", logger=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, plugins=[SafeCheckpointIO()],
    )  # fmt: skip
    torch.manual_seed(0)
    module, saved = Counted(), folder / "last.ckpt"
    resumed = saved if saved.exists() else None
    with suppress(Killed):
        trainer.fit(
            module,
            DataLoader(torch.ones(12, 1)),
            DataLoader(torch.ones(1, 1)),
            ckpt_path=resumed,
            weights_only=True,
        )
    return module, trainer


OFTEN = [{}, {"every_n_train_steps": 4}, {"every_n_train_steps": 12}, {"train_time_interval": timedelta(0)}]
END = [{}, {"save_on_train_epoch_end": False}, {"save_on_train_epoch_end": True}]


@pytest.mark.parametrize(("often", "end"), [
    pytest.param(often, end, marks=[pytest.mark.slow] if often and end else []) for often in OFTEN for end in END
])  # fmt: skip
@pytest.mark.parametrize("hook", ["on_validation_start", "on_validation_end", "on_fit_end"])
def test_a_run_that_is_killed_goes_on_with_the_epochs_that_were_whole(tmp_path, often, end, hook):
    whole, _ = fit(tmp_path / "whole")
    for epoch in (0, 1, 2):
        fit(tmp_path / str(epoch), KillAt(hook, epoch + (hook == "on_fit_end")), **often, **end)
        module, trainer = fit(tmp_path / str(epoch), **often, **end)
        assert module.validated == [0, 1, 2] and trainer.global_step == 36
        assert torch.equal(module.layer.weight, whole.layer.weight)


def test_planted_lightnings_own_leaves_out_the_validation_of_an_epoch(tmp_path):
    for _ in range(2):
        module, _ = fit(tmp_path, KillAt("on_validation_start", 1), kind=ModelCheckpoint, every_n_train_steps=4)
    assert module.validated == [0, 2]


def test_within_an_epoch_it_saves_between_steps_and_not_between_the_batches_of_one(tmp_path):
    often = {"train_time_interval": timedelta(0)}
    accumulated = GradientAccumulationScheduler({0: 3})
    fit(tmp_path, accumulated, KillAt("on_train_batch_start", 1, batch=9), **often)
    loops = torch.load(tmp_path / "last.ckpt", weights_only=True)["loops"]["fit_loop"]
    assert loops["epoch_loop.batch_progress"]["current"]["ready"] == 6


def test_several_epochs_may_pass_between_saves(tmp_path):
    fit(tmp_path, KillAt("on_train_batch_start", 2), every_n_epochs=2)
    assert torch.load(tmp_path / "last.ckpt", weights_only=True)["epoch"] == 1
    fit(tmp_path / "none", KillAt("on_train_batch_start", 1), every_n_epochs=2)
    assert not (tmp_path / "none" / "last.ckpt").exists()
