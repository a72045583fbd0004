"""Networks: parameter counts, exact invariance of the logits."""

import copy
import re

import pytest
import torch

import gsa
from gsa.encodings import KINDS
from gsa.models import GSANet, Network, preset

# Parameters of the published networks, as their public code builds them; the paper gives one number a data set.
PUBLISHED = {
    "rotmnist_z2_sa": 44_368,
    "rotmnist_r4_sa": 44_428,
    "rotmnist_r8_sa": 44_508,
    "rotmnist_r12_sa": 44_588,
    "rotmnist_r16_sa": 44_668,
    "cifar10_z2_sa": 3_001_648,
    "cifar10_z2m_sa": 3_001_808,
    "pcam_z2_sa": 206_926,
    "pcam_r4_sa": 207_034,
    "pcam_r8_sa": 207_178,
    "pcam_r4m_sa": 207_178,
}
PAPER = {"rotmnist": 44_670, "cifar10": 2_990_000, "pcam": 205_660}
# The convolutional rivals, to the last parameter as published; PCam and CIFAR-10 as their public code builds them.
RIVALS = {
    "rotmnist_z2_cnn": 21_750,
    "rotmnist_r4_cnn": 77_539,
    "rotmnist_alpha_r4_cnn": 73_130,
    "rotmnist_orbit_cnn": 36_326,
    "imagefolder_torchvision": 11_177_538,  # resnet18 of two classes
    "cifar10_z2_cnn": 1_370_996,
    "pcam_z2_cnn": 130_598,
    "pcam_r4_cnn": 129_649,
    "pcam_r4m_cnn": 124_209,
    "pcam_alpha_f_r4_cnn": 140_453,
    "pcam_alpha_f_r4m_cnn": 141_221,
}
# Ours, with heads that start at offsets: at most as many as stand here.
OURS = {
    "rotmnist_gsa": 45_000,
    "rotmnist_positional": 45_000,
    "digits_gsa": 25_000,
    "digits_gsa_z2": 25_000,
    "cifar10_gsa": 1_370_996,
    "pcam_gsa": 140_000,
    "imagefolder_gsa": 30_000,
}
TRANSFORMERS = {"rotmnist_vit": "rotmnist_r4_sa", "cifar10_vit": "cifar10_z2_sa", "pcam_vit": "pcam_r4_sa"}
GRID = gsa.group("R4M")  # all eight symmetries of the pixel grid


def count(network):
    return sum(p.numel() for p in network.parameters())


def pictures(name, batch):
    """As many pictures as a network by name is made for."""
    side = preset(name).image_size
    return torch.rand(batch, preset(name).keywords["in_channels"], side, side)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_and_a_bias_for_every_class(name):
    network = gsa.create_model(name)
    assert count(network) == PUBLISHED[name] + network.num_classes


@pytest.mark.parametrize("data", PAPER)
def test_the_papers_numbers_of_parameters_are_these_within_one_percent(data):
    """The paper gives that of one network for all of its groups."""
    found = [number for name, number in PUBLISHED.items() if name.startswith(data)]
    assert found and all(number == pytest.approx(PAPER[data], rel=0.01) for number in found)


def test_the_list_of_models():
    digits = ["digits_z2_sa", "digits_r4_sa", "digits_r8_sa"]
    assert gsa.list_models() == [*PUBLISHED, *digits, *OURS, *RIVALS, *TRANSFORMERS]


def test_models_are_listed_by_pattern_and_by_whether_they_are_trained():
    assert gsa.list_models("pcam_*_cnn") == [name for name in gsa.list_models() if re.fullmatch("pcam_.*_cnn", name)]
    assert set(gsa.list_models(pretrained=True)) == set(gsa.models.list_pretrained())
    assert gsa.list_models("digits_gsa*", pretrained=True) == ["digits_gsa", "digits_gsa_z2"]
    assert gsa.list_models("digits") == []
    assert gsa.list_models(["pcam_*_cnn", "digits_gsa"]) == ["digits_gsa", *gsa.list_models("pcam_*_cnn")]


@pytest.mark.parametrize("name", OURS)
def test_ours_are_small(name):
    assert count(gsa.create_model(name)) <= OURS[name]


@pytest.mark.parametrize("name", OURS)
def test_ours_keep_exactly_their_own_symmetries(name, float64):
    network, images = gsa.create_model(name), pictures(name, 4)
    for layer in network.modules():
        if isinstance(layer, gsa.nn.SelfAttention):
            torch.nn.init.normal_(layer.out.weight, std=layer.out.in_features**-0.5)  # content speaks
    with torch.no_grad():
        network(images)  # running statistics
    assert_exactly_its_own_symmetries(network.eval(), images[:1])


def test_content_is_where_the_preset_has_it():
    heads = [
        (layer.positional_heads, layer.content_heads)
        for layer in gsa.create_model("rotmnist_gsa").modules()
        if isinstance(layer, gsa.nn.SelfAttention)
    ]
    assert heads == [(18, 0)] + [(27, 0)] * 4 + [(27, 4)]
    positional = gsa.create_model("rotmnist_positional")
    assert not any(m.content_heads for m in positional.modules() if isinstance(m, gsa.nn.SelfAttention))


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_have_the_published_number_of_parameters(name):
    assert count(gsa.create_model(name)) == RIVALS[name]


@pytest.mark.parametrize("name, rival", TRANSFORMERS.items())
def test_transformers_are_of_the_size_of_their_rivals(name, rival):
    network = gsa.create_model(name).eval()
    assert abs(count(network) / count(gsa.create_model(rival)) - 1) < 0.03
    images = pictures(name, 2)
    assert network(images).shape == (2, network.num_classes)
    torch.nn.init.normal_(network.transformer.heads.head.weight)  # zeros at first
    assert min(gsa.symmetry.equivariance_error(network, images, GRID)[g] for g in range(1, 8)) > 1e-3
    with pytest.raises(ValueError, match="set image_size"):
        network(images[..., :-1])


def test_digits_networks_are_of_equal_size():
    sizes = [count(gsa.create_model(f"digits_{g}_sa")) for g in ("z2", "r4", "r8")]
    assert max(sizes) / min(sizes) < 1.02


def contains(group, element):
    """Whether an element of the grid's symmetries lies in a group."""
    return any(torch.equal(GRID.matrices[element], m) for m in group.matrices)


def assert_exactly_its_own_symmetries(network, images):
    """Logits change by at most 1e-10 under the group's grid elements, by more than 1e-5 under all others."""
    for element, error in gsa.symmetry.equivariance_error(network, images, GRID).items():
        if contains(network.group, element):
            assert error <= 1e-10, GRID.describe(element)
        else:
            assert error > 1e-5, GRID.describe(element)


@pytest.mark.parametrize("group, form", [
    *((group, form) for group in ("Z2M", "R4", "R8", "R4M") for form in ("summed", "regular")),
    ("R16", "regular"), ("R8M", "regular"),
    *(pytest.param(group, "summed", marks=pytest.mark.slow) for group in ("R12", "R16", "R8M")),
    pytest.param("R12", "regular", marks=pytest.mark.slow),
])  # fmt: skip
def test_rotmnist_networks_keep_exactly_their_own_symmetries(group, form, float64):
    network = gsa.create_model("rotmnist_r4_sa", group=group, form=form)
    assert_exactly_its_own_symmetries(network, torch.rand(1, 1, 28, 28))


@pytest.mark.parametrize("name, side", [
    ("cifar10_z2m_sa", 32), ("pcam_r4_sa", 96), ("pcam_r4m_sa", 96),
    pytest.param("pcam_r8_sa", 96, marks=pytest.mark.slow),
])  # fmt: skip
def test_cifar_and_pcam_networks_keep_exactly_their_own_symmetries(name, side, float64):
    network = gsa.create_model(name)
    assert_exactly_its_own_symmetries(network, torch.rand(1, network.lifting.in_channels, side, side))


@pytest.mark.parametrize("name", ["digits_z2_sa", "digits_r4_sa", "digits_r8_sa"])
def test_digits_networks_keep_exactly_their_own_symmetries(name, float64):
    network = gsa.create_model(name)
    network(torch.rand(8, 1, 16, 16))  # running statistics
    assert_exactly_its_own_symmetries(network, torch.rand(2, 1, 16, 16))


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_keep_exactly_their_own_symmetries(name, float64):
    network, images = gsa.create_model(name), pictures(name, 4)
    with torch.no_grad():
        network(images)  # running statistics
    network.eval()
    assert_exactly_its_own_symmetries(network, images[:1])


@pytest.mark.parametrize("encoding", [name for name, kind in KINDS.items() if "regular" in kind.forms])
def test_every_encoding_in_a_network(encoding, float64):
    network = gsa.create_model("digits_r4_sa", encoding=encoding, form="regular")
    errors = gsa.symmetry.equivariance_error(network, torch.rand(1, 1, 16, 16), network.group)
    assert (max(errors.values()) < 1e-10) == (encoding != "absolute")


def test_the_published_pool_of_pcam_loses_exactness(float64):
    """Planted failure: a 2×2 pool of the last 7×7 map, as in public code, leaves out a row and a column."""
    published = gsa.create_model("pcam_r4_sa", pools=(2, 2, 2, 2), on_inexact="allow")
    errors = gsa.symmetry.equivariance_error(published, torch.rand(1, 3, 96, 96), published.group)
    assert min(errors[g] for g in (1, 2, 3)) > 1e-6
    with pytest.raises(ValueError, match="96×96 images, and 96 is not such a side; nearest ones that are: 88 or 104"):
        gsa.create_model("pcam_r4_sa", pools=(2, 2, 2, 2))(torch.rand(1, 3, 96, 96))


def test_images_that_are_not_square(float64):
    network = gsa.create_model("digits_r4_sa")
    errors = gsa.symmetry.equivariance_error(network, torch.rand(1, 1, 16, 20), network.group)
    assert max(errors.values()) < 1e-10


@pytest.mark.parametrize("name", ["rotmnist_r4_sa", *RIVALS, *TRANSFORMERS])
def test_all_networks_have_features_and_a_head(name):
    network, images = gsa.create_model(name).eval(), pictures(name, 1)
    assert isinstance(network, Network)
    features = network.forward_features(images)
    axis = 2 if name in TRANSFORMERS else 1
    assert features.shape[axis] == network.num_features
    assert torch.equal(network.forward_head(features), network(images))
    pooled = network.forward_head(features, pre_logits=True)
    network.reset_classifier(0)
    assert pooled.shape == (1, network.num_features) and torch.equal(pooled, network(images))


def test_a_transformer_is_that_of_torchvision():
    network, images = gsa.create_model("rotmnist_vit").eval(), pictures("rotmnist_vit", 2)
    torch.nn.init.normal_(network.transformer.heads.head.weight)  # zeros at first
    assert torch.equal(network(images), network.transformer(images))


def test_features_and_head_compose_to_the_network():
    network = gsa.create_model("rotmnist_r4_sa").eval()
    images = torch.rand(2, 1, 28, 28)
    features = network.forward_features(images)
    assert features.shape == (2, network.num_features, 4, 4, 4)
    assert torch.equal(network.forward_head(features), network(images))


@pytest.mark.parametrize("pixels", ["sum", "mean", "max"])
@pytest.mark.parametrize("poses", ["max", "mean"])
def test_heads_are_invariant(pixels, poses, float64):
    network = gsa.create_model("digits_r4_sa", pixels=pixels, poses=poses)
    assert_exactly_its_own_symmetries(network, torch.rand(1, 1, 16, 16))


def test_concatenating_pixels_is_not_invariant(float64):
    """Planted failure: a head that gives every pixel its own weights."""
    network = gsa.create_model("digits_r4_sa")
    network.forward_head = lambda features: features.amax(2).flatten(1) @ torch.randn(features[0, :, 0].numel(), 10)
    with pytest.raises(AssertionError, match="GSANet is not equivariant"):
        gsa.symmetry.assert_equivariant(network, torch.rand(1, 1, 16, 16), network.group)


def test_every_parameter_learns_but_the_key_bias():
    """All gradients are non-zero, except that of key biases, which cancel in the softmax."""
    network = gsa.create_model("digits_r4_sa")
    network(torch.rand(4, 1, 16, 16)).logsumexp(-1).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("kind", ["functional", "rotary"])
def test_copies_and_state(kind):
    network = gsa.create_model("digits_r4_sa", encoding=kind, form="regular").eval()
    images = torch.rand(2, 1, 16, 16)
    twin: GSANet = gsa.create_model("digits_r4_sa", encoding=kind, form="regular").eval()
    twin.load_state_dict(network.state_dict())
    assert torch.equal(twin(images), network(images))
    assert torch.equal(copy.deepcopy(network)(images), network(images))


@pytest.mark.parametrize(
    "name, keyword",
    [
        (name, keyword)
        for name in ("digits_r4_sa", "digits_gsa", "rotmnist_r4_cnn", "cifar10_z2_cnn", "rotmnist_vit")
        for keyword in preset(name).training_only
        if "dropout" in keyword and not (name == "digits_gsa" and keyword in ("attention_dropout", "value_dropout"))
    ],  # whose heads with content are silent at the start
)
def test_every_dropout_acts_in_training(name, keyword):
    known = preset(name)
    none = {other: 0.0 for other in known.training_only if "dropout" in other}
    channels = 3 if known.data == "cifar10" else 1
    images = torch.rand(2, channels, known.image_size, known.image_size)
    network = gsa.create_model(name, **none | {keyword: 0.5})
    assert not torch.equal(network.forward_features(images), network.forward_features(images))
    plain = gsa.create_model(name, **none)
    assert torch.equal(plain.forward_features(images), plain.forward_features(images))  # nothing else, by chance


def test_the_pool_of_the_stem_comes_before_its_norm():
    network = gsa.create_model("digits_gsa", stem_pool=2, lifted_norm=True, norm="channel").eval()
    images = torch.rand(2, 1, 26, 26)
    torch.nn.init.normal_(network.lifted[0].weight)
    lifted = torch.nn.functional.max_pool3d(network.lifting(images), (1, 2, 2))
    torch.testing.assert_close(network.forward_stages(images)[0], network.lifted(lifted))
