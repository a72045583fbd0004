"""Networks of torchvision as rivals, as they are and in every pose."""

import pytest
import torch
import torchvision

import gsa
from gsa.saved import build

SLOW = pytest.mark.slow


def test_of_the_group_z2_it_is_the_network_itself(float64):
    """With its last linear map for the head."""
    theirs = torchvision.models.resnet18(num_classes=3).eval()
    ours = gsa.create_model("imagefolder_torchvision", num_classes=3).eval()
    weights = {f"orbit.network.{key}": value for key, value in theirs.state_dict().items()}
    head = {f"head.{key}": weights.pop(f"orbit.network.fc.{key}") for key in ("weight", "bias")}
    ours.load_state_dict(weights | head)
    x = torch.rand(2, 3, 40, 33)
    torch.testing.assert_close(ours(x), theirs(x))


def test_in_every_pose_the_largest_features_count(float64):
    """Its definition written out; exact under the turns of its group."""
    network = gsa.create_model("imagefolder_torchvision", group="R4M", num_classes=3).eval()
    x = torch.rand(2, 3, 32, 32)
    turned = [each.rot90(k, (2, 3)) for each in (x, x.flip(-1)) for k in range(4)]
    features = torch.stack([network.orbit.network(each) for each in turned]).amax(0)
    torch.testing.assert_close(network(x), network.head(features))
    torch.testing.assert_close(network(x.rot90(1, (2, 3)).flip(-1)), network(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("architecture", ["mobilenet_v3_small", "densenet121", "convnext_tiny", "shufflenet_v2_x0_5"])
@pytest.mark.parametrize("channels", [1, 5])
def test_pictures_may_have_any_channels(architecture, channels):
    network = gsa.create_model(
        "imagefolder_torchvision", architecture=architecture, in_channels=channels, num_classes=3
    )
    assert network.eval()(torch.rand(1, channels, 64, 64)).shape == (1, 3)
    with pytest.raises(ValueError, match=f"images .B, {channels}, H, W"):
        network(torch.rand(1, channels + 1, 64, 64))


@pytest.mark.parametrize(
    "architecture", ["resnet19", "vit_b_16", "squeezenet1_0", "inception_v3", "regnet_y_400mf", None]
)
def test_other_architectures_are_refused_and_the_nearest_is_named(architecture):
    with pytest.raises(ValueError, match="architecture must be one of torchvision's alexnet, ") as refused:
        gsa.create_model("imagefolder_torchvision", architecture=architecture)
    assert architecture != "resnet19" or "the nearest is 'resnet18'" in str(refused.value)


@pytest.mark.parametrize("architecture", [
    "convnext_tiny", "efficientnet_b0", pytest.param("densenet121", marks=SLOW), pytest.param("swin_t", marks=SLOW),
    pytest.param("vgg11_bn", marks=SLOW),
])  # fmt: skip
def test_weights_make_it_again(architecture):
    """Of a file that nobody vouches for, whose network is planned before it is made; and of torchvision's own."""
    network = gsa.create_model("imagefolder_torchvision", architecture=architecture, num_classes=3).eval()
    keywords = {"name": "imagefolder_torchvision", "architecture": architecture, "in_channels": 3, "num_classes": 3}
    again = build("file", keywords | {"group": "Z2"}, network.state_dict())
    x = torch.rand(1, 3, 64, 64)
    assert torch.equal(again(x), network(x))
    theirs = torchvision.models.get_model(architecture).state_dict()
    network.load_torchvision(theirs)
    taken = network.orbit.network.state_dict()
    assert taken and all(torch.equal(value, theirs[name]) for name, value in taken.items())


def test_without_a_head_it_gives_pooled_features():
    network = gsa.create_model("imagefolder_torchvision", num_classes=0, architecture="mobilenet_v3_small").eval()
    assert network(torch.rand(2, 3, 64, 64)).shape == (2, network.num_features) == (2, 1024)
