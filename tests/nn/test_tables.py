"""Tables of the group: averaged with nobody's weights, moved and cast without loss, and never lost on "meta"."""

import copy

import pytest
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from gsa import nn
from gsa.encodings import KINDS
from gsa.symmetry import relative_error

LAYERS = {
    **{kind: lambda kind=kind: nn.GroupSelfAttention("R4", 4, 4, head_dim=8, encoding=kind) for kind in KINDS},
    "convolution": lambda: nn.GroupConvolution("R4M", 4, 4, 3),
    "attentive convolution": lambda: nn.AttentiveConvolution("R4", 4, 4, 3, hidden=2),
}


@pytest.fixture(params=LAYERS)
def layer(request, float64):
    return LAYERS[request.param]().eval()


def feature(layer):
    return torch.randn(2, 4, layer.group.order, 9, 9)


@pytest.mark.parametrize("decay", [0.9, 0.9995])
def test_the_average_of_a_layer_with_itself_is_the_layer(layer, decay):
    averaged = AveragedModel(layer, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=True).eval()
    for _ in range(3):
        averaged.update_parameters(layer)
    x = feature(layer)
    assert relative_error(averaged(x), layer(x)) < 1e-12


def test_planted_whole_numbers_in_a_buffer_become_others():
    holder = torch.nn.Module()
    holder.register_buffer("table", torch.tensor([3]))
    averaged = AveragedModel(holder, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    for _ in range(3):
        averaged.update_parameters(holder)
    assert averaged.module.table.item() == 2


def test_a_layer_comes_back_from_meta_with_its_weights(layer):
    x = feature(layer)
    there = copy.deepcopy(layer).to("meta")
    assert there(x.to("meta")).shape == layer(x).shape
    there.load_state_dict(layer.state_dict(), assign=True)
    assert torch.equal(there(x), layer(x))


@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_that_is_made_on_meta_says_its_shape_there_and_takes_weights(kind, float64):
    layer = LAYERS[kind]()
    with torch.device("meta"):
        there = LAYERS[kind]()
    x = feature(layer)
    assert there(x.to("meta")).shape == layer(x).shape
    there.load_state_dict(layer.state_dict(), assign=True)
    assert torch.equal(there(x), layer(x))


def test_casts_lose_nothing(layer):
    x = feature(layer)
    expected = layer(x)
    weights = copy.deepcopy(layer.state_dict())
    layer.half().double().load_state_dict(weights)
    assert torch.equal(layer(x), expected)
