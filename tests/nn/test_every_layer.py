"""What every layer does alike: gradients under checkpoints, weights drawn anew, inputs that are refused."""

import math

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import gsa
from gsa import nn
from gsa.encodings import KINDS
from tests.devices import DEVICES

LAYERS = {
    **{kind: lambda kind=kind: nn.GroupSelfAttention("R4", 4, 4, head_dim=8, encoding=kind) for kind in KINDS},
    "summed": lambda: nn.GroupSelfAttention("R4", 4, 4, form="summed"),
    "heads by position": lambda: nn.GroupSelfAttention("R4", 4, 4, 3, 8, 3, encoding="quadratic", positional_heads=2),
    "lifting": lambda: nn.LiftingSelfAttention("R4", 4, 4, encoding="quadratic"),
    "residual block": lambda: nn.AttentionBlock("R4", 4, 6, norm="batch"),
    "plain block": lambda: nn.PlainBlock("R4", 4, 6),
    "posed": lambda: nn.PosedAttention("R4", 4, 6),
    "convolution": lambda: nn.GroupConvolution("R4", 4, 4, 3),
    "lifting convolution": lambda: nn.LiftingConvolution("R4", 4, 4, 3),
    "attentive convolution": lambda: nn.AttentiveConvolution("R4", 4, 4, 3, hidden=2),
    "feature attention": lambda: nn.FeatureAttention("R4", 4, hidden=2),
    "pool": lambda: nn.SpatialPool(2),
    "overlapping pool": lambda: nn.SpatialPool(4, 2),
    "average pool": lambda: nn.SpatialPool(2, kind="average"),
    "pointwise": lambda: nn.PointwiseLinear(4, 6),
}
OF_IMAGES = ("lifting", "posed", "lifting convolution")


@pytest.fixture(params=LAYERS)
def layer(request):
    torch.manual_seed(0)
    return request.param, LAYERS[request.param]()


def taken(name, side=8):
    return torch.randn(2, 4, side, side) if name in OF_IMAGES else torch.randn(2, 4, 4, side, side)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("reentrant", [False, True])
def test_gradients_under_a_checkpoint_are_those_without(layer, device, reentrant):
    name, module = layer[0], layer[1].to(device)
    x = taken(name).to(device).requires_grad_()
    module(x).square().sum().backward()
    expected = [x.grad, *(p.grad for p in module.parameters())]
    x.grad = None
    module.zero_grad()
    checkpoint(module, x, use_reentrant=reentrant).square().sum().backward()
    torch.testing.assert_close([x.grad, *(p.grad for p in module.parameters())], expected)


@pytest.mark.parametrize("name", ["digits_gsa", "digits_r4_sa", "rotmnist_r4_cnn"])
def test_networks_under_a_checkpoint(name):
    network, side = gsa.create_model(name), 12 if "digits" in name else 28
    checkpoint(network.forward_features, torch.rand(2, 1, side, side), use_reentrant=False).sum().backward()
    assert all(p.grad is not None for p in network.stages.parameters()) if hasattr(network, "stages") else True


SUMS = {
    "functional": 638.0118,
    "table": 698.1497,
    "fourier": 657.8789,
    "rotary": 550.0531,
    "quadratic": 370.8255,
    "heads by position": 104.1797,
}


def drawn_anew(module):
    """As those do who train one network after another, or make networks on "meta"."""
    for part in module.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()


def test_all_weights_are_drawn_anew_as_they_were_at_first(layer):
    module = layer[1]
    first = {name: p.detach().clone() for name, p in module.named_parameters()}
    with torch.no_grad():
        for p in module.parameters():
            p.add_(100.0)
    drawn_anew(module)
    for name, p in module.named_parameters():
        if p.numel() > 8:
            assert p.detach().std().item() == pytest.approx(first[name].std().item(), rel=0.7, abs=1e-6), name
        assert not p.numel() or p.detach().abs().max() < 20, name


def test_heads_with_content_beside_heads_by_position_are_silent_again():
    module = LAYERS["heads by position"]()
    with torch.no_grad():
        module.out.weight.add_(1.0)
    drawn_anew(module)
    joining = module.out.weight[:, 2 * module.head_dim :]
    assert joining.numel() and not joining.any() and module.out.weight.any()


def test_a_seed_gives_the_weights_that_it_gave_before():
    """Figures of the results are of these; sums of the first version."""
    torch.manual_seed(0)
    sums = {
        kind: sum(p.detach().double().abs().sum().item() for p in LAYERS[kind]().parameters())
        for kind in ("functional", "table", "fourier", "rotary", "quadratic", "heads by position")
    }
    assert sums == pytest.approx(SUMS, rel=1e-6)


@pytest.mark.parametrize("name", [name for name in LAYERS if "pool" not in name and name != "residual block"])
def test_pictures_that_were_read_as_bytes_are_refused(name):
    module = LAYERS[name]()
    with pytest.raises(ValueError, match="needs floating numbers, as pictures / 255 are, but got torch.uint8"):
        module(taken(name).to(torch.uint8))


@pytest.mark.parametrize("make, message", [
    (lambda: nn.AttentionBlock("R4", 4, 4, {"num_heads": 2}), "options must be of the class Attention.*, but got {"),
    (lambda: nn.PlainBlock("R4", 4, 4, {"num_heads": 2}), "options must be of the class Attention"),
    (lambda: gsa.models.GSANet("R4", attention={"num_heads": 2}), "attention must be of the class Attention"),
    (lambda: gsa.models.GSANet("R4", plan={"channels": 2}), "plan must be of the class Stage"),
    (lambda: nn.PointwiseLinear(0, 3), "in_features must be a positive integer, but got 0"),
    (lambda: nn.PointwiseLinear(3, 4)(torch.rand(2, 4, 5, 5)), r"takes \[B, 3, …\], but got the shape \[2, 4"),
    (lambda: nn.SpatialPool(2)(torch.rand(4, 6, 6)), r"takes \[B, C, H, W\] or .* but got the shape \[4, 6, 6\]"),
])  # fmt: skip
def test_what_no_layer_can_be_made_of_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_spread_of_weights_at_the_start():
    posed, weighed = gsa.nn.PosedAttention("R4", 16, 64, 3), gsa.nn.AttentiveConvolution("R4", 16, 8, 3, hidden=4)
    assert posed.weight.std().item() == pytest.approx(math.sqrt(2 / (9 * 16)), rel=0.05)
    for weight, inputs in ((weighed.first, 16), (weighed.second, 4)):
        assert weight.abs().max().item() == pytest.approx(1 / math.sqrt(inputs), rel=0.05)
