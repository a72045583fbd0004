"""A GPU is never waited for within a step, and nothing is copied to it: else no CUDA graph could record the step.

The device "meta" stands for a GPU: it has no numbers, and operations tell where their tensors lie.
"""

from contextlib import suppress

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import gsa
from gsa import _tables, ops

GPU = "meta"
WAITING = ("_local_scalar_dense", "nonzero", "equal", "masked_select", "_unique2", "bincount")


class Unrecordable(TorchDispatchMode):
    """Collects what a step asks the GPU for, or brings to it, by operation."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.name().removeprefix("aten::")
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        by_bool = "index" in name and any(x.dtype == torch.bool for x in given[1:])
        if (name in WAITING or by_bool) and any(x.device.type == GPU for x in given):
            self.found.add(name)
            raise Waits
        result = function(*args, **(kwargs or {}))
        there = {x.device.type for x in (*given, *tree_leaves(result)) if isinstance(x, torch.Tensor)}
        if GPU in there and any(x.device.type == "cpu" for x in given if x.ndim or "copy" in name):
            self.found.add(f"{name}: {sorted(there)}")
        return result


class Waits(Exception):
    """For numbers that there are none of."""


@pytest.fixture
def unrecordable(monkeypatch):
    """unrecordable(network, images) → what a step of its training, on a GPU, cannot be recorded for."""

    def moved(table, other):
        return table.to(other.device, other.dtype)

    monkeypatch.setattr(_tables, "_like", moved)  # they stay on the CPU where a network is on "meta"

    def of(network, images):
        network, images = network.to(GPU), images.to(GPU)
        labels = torch.zeros(len(images), dtype=torch.int64, device=GPU)
        with ops.use("tiled"), suppress(Waits), Unrecordable() as watch:
            loss = F.cross_entropy(network(images), labels)
            loss.backward(torch.ones_like(loss))
        return watch.found

    return of


@pytest.mark.parametrize("name", gsa.list_models())
def test_steps_of_all_networks_can_be_recorded(name, unrecordable):
    network = gsa.create_model(name)
    assert not unrecordable(network, torch.zeros(2, network.in_channels, network.image_size, network.image_size))


def test_steps_of_the_published_pose_index_can_be_recorded(unrecordable):
    with pytest.warns(UserWarning, match="not equivariant"):
        network = gsa.create_model("digits_r4_sa", form="summed", pose_index="published")
    assert not unrecordable(network, torch.zeros(2, 1, 8, 8))


class Planted(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way, self.linear = way, nn.Linear(4, 10)

    def forward(self, images):
        return self.way(self.linear(images.flatten(1)))


@pytest.mark.parametrize("way", [
    lambda x: x + torch.zeros(10).to(x.device),
    lambda x: x[:, torch.arange(10)],
    lambda x: x + torch.tensor(0.0).to(x.device),
    lambda x: x + x.masked_select(x > 0).sum(),
    lambda x: x[x[:, 0] > 0],
])  # fmt: skip
def test_planted_copies_and_questions_are_found(way, unrecordable):
    assert unrecordable(Planted(way), torch.zeros(2, 1, 2, 2))
