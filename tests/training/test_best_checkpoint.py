"""Of epochs that are equally good, the one with the smaller loss is kept, then the later one."""

import math

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader

from gsa.training import BestCheckpoint, SafeCheckpointIO

NONE = None  # no val/loss


class Scripted(lightning.LightningModule):
    """Logs what it is told, an epoch each: val/accuracy and val/loss."""

    def __init__(self, script):
        super().__init__()
        self.script, self.layer = script, nn.Linear(1, 1)

    def training_step(self, batch, index):
        return self.layer(batch).sum()

    def validation_step(self, batch, index):
        accuracy, loss = self.script[self.current_epoch]
        self.log("val/accuracy", accuracy)
        if loss is not NONE:
            self.log("val/loss", loss)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def kept(folder, script, kind=BestCheckpoint, ckpt_path=None, **options):
    """The epoch that is kept, and the callback."""
    options = {"filename": "best"} | options
    best = kind(folder, monitor="val/accuracy", mode="max", enable_version_counter=False,
                save_on_train_epoch_end=True, **options)  # fmt: skip
    trainer = lightning.Trainer(
        max_epochs=len(script), callbacks=[best], accelerator="cpu", logger=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, plugins=[SafeCheckpointIO()],
    )  # fmt: skip
    loader = DataLoader(torch.ones(1, 1))
    trainer.fit(Scripted(script), loader, loader, ckpt_path=ckpt_path, weights_only=True)
    return torch.load(best.best_model_path, weights_only=True)["epoch"], best


pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning on few workers, and on a folder that is not empty


@pytest.mark.parametrize("script, ours, lightnings", [
    ([(0.5, 2.0), (0.5, 1.0), (0.5, 3.0)], 1, 0),
    ([(0.5, 1.0), (0.5, 1.0)], 1, 0),
    ([(0.5, 1.0), (0.6, 9.0), (0.5, 0.1)], 1, 1),
    ([(0.5, 1.0), (0.5, math.nan)], 0, 0),
    ([(0.5, math.nan), (0.5, 2.0)], 1, 0),
    ([(0.5, 1.0), (0.5 + 1e-7, 2.0)], 0, 1),  # as many right, in other batches
    ([(0.5, NONE), (0.5, NONE)], 0, 0),
])  # fmt: skip
def test_ties_are_broken_by_the_loss(tmp_path, script, ours, lightnings):
    assert kept(tmp_path / "ours", script)[0] == ours
    assert kept(tmp_path / "lightnings", script, ModelCheckpoint)[0] == lightnings


def test_of_several_kept_ones_it_is_lightnings(tmp_path):
    script = [(0.5, 3.0), (0.5, 2.0), (0.5, 1.0)]
    for kind in (BestCheckpoint, ModelCheckpoint):
        kept(tmp_path / kind.__name__, script, kind, save_top_k=2, filename="{epoch}")
        assert {path.name for path in (tmp_path / kind.__name__).iterdir()} == {"epoch=0.ckpt", "epoch=1.ckpt"}


@pytest.mark.parametrize("before, expected", [(BestCheckpoint, 1), (ModelCheckpoint, 0)])
def test_a_resumed_run_knows_the_loss_of_the_best(tmp_path, before, expected):
    """Planted: a checkpoint of before, which does not know it; its best is replaced by what is better only."""
    script = [(0.5, 2.0), (0.5, 1.0), (0.5, 3.0)]
    kept(tmp_path, script[:1], before)
    epoch, best = kept(tmp_path, script, ckpt_path=tmp_path / "best.ckpt")
    assert epoch == expected and best.best_loss == (1.0 if expected else None)
    assert kept(tmp_path, [*script, (0.75, 9.0)], ckpt_path=tmp_path / "best.ckpt")[0] == 3
