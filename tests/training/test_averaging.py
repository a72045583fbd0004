"""Where averaged weights are kept."""

from types import SimpleNamespace

import lightning
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging
from torch import nn

from gsa.training import AveragedWeights


class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(1, 1)


def test_they_are_on_the_device_of_the_training_before_the_network_is():
    """A device that needs no GPU; Lightning's own stay where the network is, which this is written against."""
    trainer, network = SimpleNamespace(strategy=SimpleNamespace(root_device=torch.device("meta"))), Line()
    found = []
    for average in (AveragedWeights(0.9), EMAWeightAveraging(decay=0.9)):
        average.setup(trainer, network, "fit")
        found.append({p.device.type for p in average._average_model.module.parameters()})
        assert average._average_model.n_averaged.device.type == "cpu"
    assert found == [{"meta"}, {"cpu"}]
    assert AveragedWeights(0.9).state_key == EMAWeightAveraging(decay=0.9).state_key
