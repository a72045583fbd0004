"""Networks inside other models: features, heads that are taken away or replaced."""

import copy

import pytest
import torch
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing

import gsa
from gsa.nn import AttentionBlock, PlainBlock
from gsa.symmetry import assert_equivariant
from gsa.training import sort_parameters
from tests.models.test_models import pictures

NAMES = [
    "rotmnist_gsa", "digits_r4_sa", "cifar10_gsa", "rotmnist_r4_cnn", "cifar10_z2_cnn", "pcam_r4_cnn", "rotmnist_vit"
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_features_are_those_before_the_head(name):
    torch.manual_seed(0)
    network = gsa.create_model(name, num_classes=0).eval()
    torch.manual_seed(0)
    backbone = gsa.create_model(name, features_only=True).eval()
    images = pictures(name, 2)
    features = backbone(images)
    assert all(f.ndim == 5 and f.shape[2] == network.group.order for f in features)
    assert backbone.channels == [f.shape[1] for f in features] and backbone.channels[-1] == network.num_features
    if name != "rotmnist_vit":  # whose head sees the class token only
        torch.testing.assert_close(features[-1], network.forward_features(images))
    chosen = gsa.create_model(name, features_only=True, out_indices=(0, -1)).eval()
    chosen.load_state_dict(backbone.state_dict())
    assert chosen.channels == [features[0].shape[1], features[-1].shape[1]]
    for one, other in zip(chosen(images), (features[0], features[-1]), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", [*NAMES, "pcam_alpha_f_r4_cnn"])
def test_what_leads_to_no_feature_is_left_out(name):
    torch.manual_seed(0)
    whole = gsa.create_model(name, features_only=True).eval()
    images, count = pictures(name, 1), len(whole.channels)
    expected = whole(images)
    for stage in range(count):
        part = gsa.create_model(name, features_only=True, out_indices=(stage - count,)).eval()
        part.load_state_dict({key: whole.state_dict()[key] for key in part.state_dict()})
        (feature,) = part(images)
        torch.testing.assert_close(feature, expected[stage])
        assert part.channels == [feature.shape[1]] and (name == "rotmnist_vit" or part.num_features == feature.shape[1])
        feature.square().mean().backward()
        if name != "rotmnist_vit":  # whose head has a norm and a token of its own
            assert all(parameter.grad is not None for parameter in part.parameters())


def test_a_head_goes_with_the_stages_that_lead_to_it():
    features = gsa.models.Features(gsa.create_model("rotmnist_r4_cnn").eval(), (0,))
    features.prune()
    assert features.network(torch.rand(1, 1, 28, 28)).shape == (1, 19) and not features.network.training


def test_features_turn_with_the_picture(float64):
    backbone = gsa.create_model("rotmnist_gsa", features_only=True).eval()
    images = torch.rand(2, 1, 28, 28)
    for index in range(len(backbone(images))):
        assert_equivariant(lambda x, index=index: backbone(x)[index], images, backbone.network.group)


@pytest.mark.parametrize("name", NAMES)
def test_heads_are_taken_away_and_replaced(name):
    network = gsa.create_model(name).double().eval()
    images = pictures(name, 2).double()
    features = network.forward_features(images)
    network.reset_classifier(0)
    assert network(images).shape == (2, network.num_features)
    network.reset_classifier(7)
    assert not network.head.training if hasattr(network, "head") else True
    assert network.state_dict().keys() == gsa.create_model(name, num_classes=7).state_dict().keys()
    assert network(images).shape == (2, 7) and network.num_classes == 7
    torch.testing.assert_close(network.eval().forward_features(images), features)
    assert gsa.create_model(name, num_classes=0).eval()(images.float()).shape == (2, network.num_features)


@pytest.mark.parametrize("count", [-1, 2.5, True])
def test_impossible_heads_are_refused(count):
    with pytest.raises(ValueError, match="num_classes must be a positive integer, or 0 for no head"):
        gsa.create_model("digits_r4_sa").reset_classifier(count)
    with pytest.raises(ValueError, match="num_classes must be a positive integer"):
        gsa.create_model("digits_r4_sa", num_classes=count)


def test_features_that_are_not_there_are_refused():
    with pytest.raises(IndexError, match="has the features 0 to 3, but out_indices names 4"):
        gsa.create_model("digits_r4_sa", features_only=True, out_indices=(0, 4))
    backbone = gsa.create_model("digits_r4_sa", features_only=True)
    backbone.network.stage_channels = ()  # as of a network of somebody's own, that does not say
    with pytest.raises(IndexError, match="has the features 0 to 3, but out_indices names 4"):
        gsa.models.Features(backbone.network, (0, 4))(torch.rand(1, 1, 12, 12))
    with pytest.raises(ValueError, match="set features_only=True"):
        gsa.create_model("digits_r4_sa", out_indices=(0,))
    with pytest.raises(ValueError, match="leave num_classes out"):
        gsa.create_model("digits_r4_sa", features_only=True, num_classes=3)
    with pytest.raises(ValueError, match="out_indices must be a list of integers"):
        gsa.create_model("digits_r4_sa", features_only=True, out_indices=2)
    with pytest.raises(ValueError, match="out_indices must be a list of integers"):
        gsa.create_model("digits_r4_sa", features_only=True, out_indices=(0.5,))


def test_positions_are_named_to_optimizers_of_timm():
    network = gsa.create_model("digits_gsa")
    parameters, kinds = dict(network.named_parameters()), sort_parameters(network)
    assert network.get_classifier() is network.head
    assert {parameters[name] for name in network.no_weight_decay()} == set(kinds["positions"]) != set()
    assert gsa.create_model("digits_r4_sa").no_weight_decay() == set()
    backbone = gsa.create_model("digits_gsa", features_only=True)
    assert backbone.no_weight_decay() == {f"network.{name}" for name in network.no_weight_decay()}
    assert backbone.no_weight_decay() <= dict(backbone.named_parameters()).keys()
    assert (backbone.group, backbone.num_features) == (network.group, network.num_features)


def test_the_head_of_a_transformer_is_that_of_torchvision_and_no_matrix():
    network = gsa.create_model("rotmnist_vit")
    network.reset_classifier(7)
    assert network.get_classifier() is network.transformer.heads and network.get_classifier().head.out_features == 7
    assert not {*network.get_classifier().parameters()} & {*sort_parameters(network)["matrices"]}


@pytest.mark.parametrize("name", ["rotmnist_gsa", "digits_r4_sa", "pcam_r4_sa"])
def test_blocks_that_keep_no_activations_give_the_same_gradients(name):
    torch.manual_seed(0)
    network = gsa.create_model(name)
    wrapped = copy.deepcopy(network)
    apply_activation_checkpointing(wrapped, check_fn=lambda layer: isinstance(layer, AttentionBlock | PlainBlock))
    gradients = []
    for each in (network, wrapped):
        torch.manual_seed(1)  # of dropouts
        each(pictures(name, 1)).square().sum().backward()
        gradients.append([parameter.grad for parameter in each.parameters()])
    torch.testing.assert_close(*gradients)


def test_timm_prepares_pictures_as_a_trained_network_knows_them():
    from timm.data import create_transform, resolve_model_data_config
    from torchvision.transforms.functional import to_pil_image, to_tensor

    network = gsa.create_model("rotmnist_gsa", pretrained=True)
    prepare = create_transform(**resolve_model_data_config(network))
    digit = to_pil_image(torch.rand(1, 28, 28))
    expected = network.pictures.normalise(to_tensor(digit))
    torch.testing.assert_close(prepare(digit), expected)
    larger = to_pil_image(torch.rand(1, 64, 64))
    torch.testing.assert_close(prepare(larger), network.pictures.normalise(to_tensor(larger.resize((28, 28), 2))))


@pytest.mark.parametrize("name, size", [("cifar10_gsa", (3, 32, 32)), ("rotmnist_vit", (1, 28, 28))])
def test_timm_prepares_pictures_for_an_untrained_network(name, size):
    from timm.data import create_transform, resolve_model_data_config
    from torchvision.transforms.functional import to_pil_image

    network = gsa.create_model(name).eval()
    picture = create_transform(**resolve_model_data_config(network))(to_pil_image(torch.rand(size[0], 40, 40)))
    assert picture.shape == size and -1 <= picture.min() < 0 < picture.max() <= 1
    network(picture[None])
    assert gsa.models.GSANet("R4").pretrained_cfg == {}  # nobody knows


@pytest.mark.parametrize("out_indices", [None, (0, 1)])
def test_weights_of_a_whole_network_are_those_of_its_features(out_indices):
    whole, images = gsa.load("digits_gsa"), torch.rand(2, 1, 12, 12)
    features = gsa.create_model("digits_gsa", features_only=True, out_indices=out_indices).eval()
    around = torch.nn.ModuleDict({"body": features})
    for prefix, module in (("", features), ("body.", around)):
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter)
        found = module.load_state_dict({prefix + key: value for key, value in whole.state_dict().items()}, strict=False)
        assert not found.missing_keys and f"{prefix}network.head.weight" in found.unexpected_keys
        expected = whole.forward_stages(images)
        assert all(map(torch.equal, features(images), expected if out_indices is None else expected[:2]))
    own = {key: torch.zeros_like(value) for key, value in features.state_dict().items()}
    features.load_state_dict(own)
    assert not any(parameter.any() for parameter in features.parameters())


def test_rates_decay_by_layer_with_timm():
    from timm.optim import create_optimizer_v2

    network = gsa.create_model("rotmnist_r4_sa")
    names = {parameter: name for name, parameter in network.named_parameters()}
    scales = {}
    for group in create_optimizer_v2(network, "adamw", layer_decay=0.5).param_groups:
        scales |= {names[parameter]: group["lr_scale"] for parameter in group["params"]}
    expected = {"lift": 2**-6, "stages.0.0": 2**-5, "stages.0.1": 2**-4, "stages.1.2": 1 / 2, "head": 1}
    for start, scale in expected.items():
        found = [found for name, found in scales.items() if name.startswith(start)]
        assert found and found == pytest.approx([scale] * len(found))
    assert len(scales) == len(names) and list(network.group_matcher(coarse=True)) == ["stem", "blocks"]


def test_a_linear_head_of_somebodys_own_is_told_how_to_make_one():
    network = gsa.create_model("digits_gsa")
    network.head = torch.nn.Linear(network.num_features, 5)
    with pytest.raises(ValueError, match=r"nn.Linear takes vectors: reset_classifier\(5\) makes a new one"):
        network(torch.rand(1, 1, 12, 12))


@pytest.mark.parametrize("name", ["cifar10_gsa", "cifar10_z2_cnn", "cifar10_vit", "pcam_r4_cnn"])
def test_what_are_no_pictures_is_told_how_it_becomes_some(name):
    network, side = gsa.create_model(name).eval(), gsa.models.preset(name).image_size
    for images, told in (
        (torch.rand(2, side, side, 3), r"takes images \[B, 3, H, W\], .* images.movedim\(-1, 1\)"),
        (torch.rand(3, side, side), r"takes images \[B, 3, H, W\], .* image\[None\]"),
        (torch.rand(2, 1, side, side), r"takes images \[B, 3, H, W\], but got the shape \[2, 1, \d+, \d+\]$"),
        (torch.zeros(2, 3, side, side, dtype=torch.uint8), "floating numbers"),
        (torch.rand(2, 3, side, side).numpy(), "torch.from_numpy"),
    ):
        with pytest.raises(ValueError, match=told):
            network(images)
