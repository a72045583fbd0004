"""Rival networks are what their papers say, written out."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import gsa
from gsa.nn import FeatureAttention, GroupConvolution, LiftingConvolution


def parts(network):
    """Convolutions and norms, in the order in which they are reached."""
    convolutions = [m for m in network.modules() if isinstance(m, GroupConvolution | LiftingConvolution)]
    return convolutions, [m for m in network.modules() if isinstance(m, nn.BatchNorm3d)]


def seven_layers(network, x):
    """Cohen & Welling 2016."""
    (*convolutions, last), norms = parts(network)
    for index, (convolution, norm) in enumerate(zip(convolutions, norms, strict=True)):
        x = F.relu(norm(convolution(x)))
        if index == 1:
            x = F.max_pool3d(x, (1, 2, 2))
    return last(x).mean((-2, -1)).amax(-1)


def all_convolutional(network, x):
    """Springenberg et al. 2015, with max-pools in the place of strides."""
    for index, (convolution, norm) in enumerate(zip(*parts(network), strict=True)):
        x = convolution(x)
        if index in (2, 5):
            x = F.max_pool3d(x, (1, 2, 2))
        x = F.relu(norm(x))
    return x.mean((-2, -1)).amax(-1)


def dense(network, x):
    """Veeling et al. 2018."""
    (lifting, *_, last), norms = parts(network)
    x = lifting(x)
    for (norm, _, convolution), transition in zip(network.blocks, [*network.transitions, None], strict=True):
        x = torch.cat((convolution(F.relu(norm(x))), x[..., 1:-1, 1:-1]), dim=1)
        if transition is not None:
            norm, _, convolution, _ = transition
            x = F.avg_pool3d(convolution(F.relu(norm(x))), (1, 2, 2))
    return last(F.relu(norms[-1](x))).mean((-2, -1)).mean(-1)


def over_an_orbit(network, x):
    """Laptev et al. 2016, with the seven layers but for the last."""
    turned = torch.cat([x.rot90(k, (2, 3)) for k in range(4)])
    for index, (convolution, norm) in enumerate(zip(*parts(network), strict=True)):
        turned = F.relu(norm(convolution(turned)))
        if index == 1:
            turned = F.max_pool3d(turned, (1, 2, 2))
    return network.head(turned.mean((-3, -2, -1)).unflatten(0, (4, -1)).amax(0))


@pytest.mark.parametrize(
    "written, name, side, options",
    [
        (seven_layers, "rotmnist_r4_cnn", 28, {"channels": 3, "dropout": 0.0}),
        (all_convolutional, "cifar10_z2_cnn", 16, {"group": "R2", "channels": 3, "input_dropout": 0.0, "dropout": 0.0}),
        (dense, "pcam_r4_cnn", 96, {"growth": 2}),
        (over_an_orbit, "rotmnist_orbit_cnn", 28, {"group": "R4", "channels": 3, "dropout": 0.0}),
    ],
)
def test_a_rival_is_its_definition_written_out(written, name, side, options):
    network = gsa.create_model(name, **options).double()
    x = torch.rand(3, parts(network)[0][0].in_channels, side, side, dtype=torch.float64)
    torch.testing.assert_close(network(x), written(network, x))


def test_spatial_attention_has_the_published_sides_and_dilations():
    """Of the picture, of every block and transition, and of the head."""
    network = gsa.create_model("pcam_alpha_f_r4_cnn")
    found = [(m.spatial.kernel_size, m.spatial.dilation) for m in network.modules() if isinstance(m, FeatureAttention)]
    assert sorted(found) == sorted([(7, 4)] * 5 + [(7, 3)] * 2 + [(7, 2), (7, 1), (5, 1), (3, 1)])
