"""The bar counts as people do."""

import lightning
import pytest
from lightning.pytorch.callbacks import RichProgressBar
from lightning.pytorch.loggers import CSVLogger

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
