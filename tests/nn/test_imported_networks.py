"""Networks of other people, whose convolutions are replaced: they turn, on pictures of any sides."""

import copy

import pytest
import timm
import torch
import torchvision
from torch import nn

import gsa
from gsa.nn import PosedAttention, replace_convolutions
from gsa.symmetry import assert_equivariant, equivariance_error

pytestmark = pytest.mark.usefixtures("float64")


def resnet18():
    model = torchvision.models.resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(1, 64, kernel_size=3, padding=1, bias=False)
    return model


def mobilenet():
    """Most of its filters have one channel each."""
    model = torchvision.models.mobilenet_v3_small(num_classes=10)
    model.features[0][0] = nn.Conv2d(1, 16, kernel_size=3, padding=1, bias=False)
    return model


@pytest.mark.parametrize("side", [16, 17, 18])
@pytest.mark.parametrize("make", [resnet18, mobilenet])
def test_a_network_of_torchvision_becomes_invariant(make, side):
    """17 → 9 → 5 → 3 → 2: strides of 2 lose nothing on odd sides; of 16 and of 18 pixels they leave out the last."""
    model = make()
    count = sum(p.numel() for p in model.parameters())
    pictures = torch.rand(4, 1, side, side)
    assert max(equivariance_error(model.eval(), pictures, gsa.group("R4")).values()) > 1e-4
    replaced = replace_convolutions(model, "R4")
    left = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    assert replaced is model and all(module.kernel_size == module.stride == (1, 1) for module in left)
    assert sum(p.numel() for p in model.parameters()) < 1.01 * count
    model.train()(pictures)
    assert_equivariant(model.eval(), pictures, gsa.group("R4"))


@pytest.mark.slow
@pytest.mark.parametrize("name, side", [
    ("resnext50_32x4d", 40),
    ("efficientnet_b0", 33),
    ("mobilenet_v3_large", 48),
    ("densenet121", 40),
    ("squeezenet1_1", 64),
    ("regnet_y_400mf", 33),
    ("convnext_tiny", 75),
    ("timm/resnetv2_50", 33),
    ("timm/res2net50_14w_8s", 40),
    ("timm/rexnet_100", 33),
    ("timm/convnextv2_atto", 64),  # of patches: 64 → 16 → 8 → 4 → 2
    ("timm/hrnet_w18_small", 64),
    ("timm/repvgg_a0", 40),
])  # fmt: skip
def test_networks_of_other_libraries_become_invariant(name, side):
    library, _, own_name = name.rpartition("/")
    model = timm.create_model(own_name) if library else torchvision.models.get_model(own_name)
    for key, parameter in model.named_parameters():
        if (parameter.ndim == 1 and key.endswith("weight")) or "scale" in key or "gamma" in key:
            nn.init.ones_(parameter)  # branches that start at zero would hide what they do
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0  # one batch is enough to normalise by
    pictures = torch.rand(4, 3, side, side)
    replace_convolutions(model, "R4").train()(pictures)
    assert_equivariant(model.eval(), pictures, gsa.group("R4"), tolerance=1e-11)


class UNet(nn.Module):
    """As they are usually built: strides on the way down, a transposed convolution and joined maps on the way up."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.down = nn.Sequential(nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.SiLU())
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.last = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, pictures):
        shallow = self.pool(self.first(pictures).relu())
        joined = torch.cat((shallow, self.up(self.down(shallow))), 1)
        return nn.functional.interpolate(self.last(joined), scale_factor=2)


def test_a_network_from_pictures_to_maps_turns_with_them():
    model, pictures = UNet().eval(), torch.rand(2, 1, 24, 16)
    assert max(equivariance_error(model, pictures, "R4M").values()) > 0.01
    assert_equivariant(replace_convolutions(model, "R4M"), pictures, gsa.group("R4M"), tolerance=1e-12)


def test_weights_of_the_network_as_it_was_can_be_loaded_later():
    """They are those that heads would have started with."""
    trained = resnet18()
    replaced, expected = replace_convolutions(resnet18(), "R4"), replace_convolutions(copy.deepcopy(trained), "R4")
    nn.init.normal_(replaced.conv1.encoding.offset)
    kept = {name: value.clone() for name, value in trained.state_dict().items()}
    replaced.load_state_dict(kept)
    assert all(torch.equal(value, expected.state_dict()[name]) for name, value in replaced.state_dict().items())
    assert kept.keys() == trained.state_dict().keys()
    up = nn.ConvTranspose2d(4, 4, 3, groups=2)
    other = PosedAttention.of_convolution(nn.ConvTranspose2d(4, 4, 3, groups=2), "R4")
    other.load_state_dict(up.state_dict())
    assert torch.equal(other.weight, PosedAttention.of_convolution(up, "R4").weight)
    del kept["conv1.weight"]
    with pytest.raises(RuntimeError, match='Missing key.*"conv1.weight"'):
        replaced.load_state_dict(kept)
