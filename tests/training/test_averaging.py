"""Where averaged weights are kept."""

from types import SimpleNamespace

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from gsa.training import AveragedWeights


class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.line, self.norm = nn.Linear(1, 1), nn.BatchNorm1d(1)


def trainer_on(device):
    return SimpleNamespace(strategy=SimpleNamespace(root_device=torch.device(device)), precision="32-true")


def test_they_are_on_the_device_of_the_training_before_the_network_is():
    """A device that needs no GPU; Lightning's own stay where the network is, which this is written against."""
    trainer, network = trainer_on("meta"), Line()
    found = []
    for average in (AveragedWeights(0.9), EMAWeightAveraging(decay=0.9)):
        average.setup(trainer, network, "fit")
        found.append({p.device.type for p in average._average_model.module.parameters()})
        assert average._average_model.n_averaged.device.type == "cpu"
    assert found == [{"meta"}, {"cpu"}]
    assert AveragedWeights(0.9).state_key == EMAWeightAveraging(decay=0.9).state_key


def steps(average, network, count=3, there="cpu"):
    """The average after steps that change the weights and the statistics."""
    trainer = trainer_on(there)
    average.setup(trainer, network, "fit")
    network.to(there)
    for step in range(count):
        trainer.global_step = step + 1
        with torch.no_grad():
            network.norm(network.line(torch.randn(8, 1, device=there)))
            network.line.weight.add_(0.1)
        average.on_train_batch_end(trainer, network, None, None, step)
    return average._average_model.state_dict()


def test_an_average_has_the_bits_of_lightnings():
    found = []
    for average in (AveragedWeights(0.9), EMAWeightAveraging(decay=0.9)):
        torch.manual_seed(0)
        found.append(steps(average, Line()))
    one, other = found
    assert one.keys() == other.keys() and one["n_averaged"] == 3
    assert all(torch.equal(one[name], other[name]) for name in one)


class Moves(TorchDispatchMode):
    """Notes what is copied from the CPU to another device, which waits for it."""

    def __init__(self):
        super().__init__()
        self.noted = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **kwargs or {})
        if function is torch.ops.aten._to_copy.default and args[0].device != result.device:
            self.noted.append(function)
        return result


@pytest.mark.parametrize("kind, moves", [(AveragedWeights, False), (EMAWeightAveraging, True)])
def test_no_step_waits_for_the_device(kind, moves):
    """Lightning's own does, which this is written against."""
    average, network = kind(decay=0.9), Line()
    steps(average, network, count=0, there="meta")
    average._average_model.to("meta").n_averaged = torch.ones((), dtype=torch.long)
    trainer = SimpleNamespace(global_step=1)
    with Moves() as seen:
        average.on_train_batch_end(trainer, network, None, None, 0)
    assert bool(seen.noted) is moves


def test_an_average_in_double_precision_is_double(small, tmp_path):
    """Planted: Lightning makes it before the network is converted; a validation then rounds the weights in training."""
    from gsa.runner import train
    from gsa.saved import read_checkpoint

    train(small("trainer.precision=64-true", "ema=0.9", "trainer.max_epochs=1", "test=false"))
    saved = read_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")
    averages = [value for name, value in saved["state_dict"].items() if value.is_floating_point()]
    training = [value for value in saved["current_model_state"].values() if value.is_floating_point()]
    assert {value.dtype for value in averages + training} == {torch.float64}
    assert any((value != value.float()).any() for value in training)


def test_half_a_step_is_not_averaged():
    average, trainer = AveragedWeights(0.9), trainer_on("cpu")
    average.setup(trainer, network := Line(), "fit")
    trainer.global_step = 1
    for batch in range(2):  # the second is the first half of a step
        average.on_train_batch_end(trainer, network, None, None, batch)
    assert average._average_model.n_averaged == 1
