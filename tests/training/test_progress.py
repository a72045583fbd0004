"""The bar counts as people do."""

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import RichProgressBar
from lightning.pytorch.loggers import CSVLogger
from rich import get_console

from gsa.training import EpochProgress


def bar_of(kind, folder, epochs):
    bar = kind()
    trainer = lightning.Trainer(max_epochs=epochs, callbacks=[bar], logger=CSVLogger(folder), accelerator="cpu")
    module = lightning.LightningModule()
    bar.setup(trainer, module, "fit")
    return bar._get_train_description(0).rstrip(), bar.get_metrics(trainer, module)


@pytest.mark.parametrize("epochs, expected", [(15, "Epoch 1/15"), (-1, "Epoch 1")])
def test_epochs_are_counted_from_one(tmp_path, epochs, expected):
    assert bar_of(EpochProgress, tmp_path, epochs) == (expected, {})


def test_lightnings_own_counts_from_zero(tmp_path):
    """Planted: what would be shown without ours."""
    assert bar_of(RichProgressBar, tmp_path, 15) == ("Epoch 0/14", {"v_num": 0})


@pytest.mark.parametrize("moves", [True, False])
def test_in_a_file_there_is_a_line_an_epoch(monkeypatch, capsys, moves):
    """A bar is written to it at the end of a run only, after hours."""
    monkeypatch.setattr(get_console(), "_force_terminal", moves)
    bar = EpochProgress()
    trainer = lightning.Trainer(max_epochs=2, callbacks=[bar], logger=False, accelerator="cpu")
    bar.setup(trainer, module := lightning.LightningModule(), "fit")
    monkeypatch.setattr(bar, "get_metrics", lambda *_: {"val/accuracy": torch.tensor(0.5), "train/loss": 1.25})
    assert bar.is_enabled is moves
    bar.on_train_epoch_end(trainer, module)
    bar.disable()  # of another process
    bar.on_train_epoch_end(trainer, module)
    assert capsys.readouterr().out == ("" if moves else "Epoch 1/2  val/accuracy 0.500, train/loss 1.250\n")
