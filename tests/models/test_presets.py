"""Networks by name: data, recipe and keywords of a preset; keywords that fit, and those that are refused."""

from pathlib import Path

import pytest
import torch

import gsa
from gsa.models import PRESETS, StagePlan, preset
from tests.models.test_models import pictures


def test_keywords_reach_the_network():
    network = gsa.create_model("rotmnist_r4_sa", group="Z2M", neighbourhood=3, form="regular", num_classes=3)
    block = network.stages[0][0]
    layer = block.attention[2]
    assert (network.group.name, layer.neighbourhood.size, layer.form) == ("Z2M", 3, "regular")
    assert network(torch.rand(1, 1, 28, 28)).shape == (1, 3)


CONFIGS = Path(gsa.__file__).parent.parent / "configs"


@pytest.mark.parametrize("name", gsa.list_models())
def test_presets_know_their_data_recipe_and_keywords(name):
    chosen = PRESETS[name]
    assert chosen is preset(name)
    for group, choice in (("data", chosen.data), ("recipe", chosen.recipe)):
        assert (CONFIGS / group / f"{choice}.yaml").is_file(), choice
    assert set(chosen.options) <= set(chosen.keywords)
    told = {keyword for keyword in chosen.keywords if "dropout" in keyword or keyword == "head_starts"}
    assert set(chosen.training_only) == told
    assert isinstance(gsa.create_model(name, **chosen.keywords), chosen.network)


def test_keywords_of_a_network_are_flat():
    assert set(preset("digits_r4_sa").keywords) == {
        "group", "in_channels", "num_classes", "channels", "blocks", "expansion", "crops", "neighbourhoods", "pools",
        "content_heads",
        "num_heads", "positional_heads", "head_starts", "head_dim", "neighbourhood", "window", "encoding", "stem_heads",
        "stem_head_dim", "stem_neighbourhood", "stem_crop", "stem_positional", "stem_pool", "form", "block", "norm",
        "lifted_norm", "block_norm", "attention_dropout", "value_dropout", "input_dropout", "dropout", "pool_dropout",
        "pixels", "poses", "on_inexact", "published", "pose_index", "bias", "border",
    }  # fmt: skip


def test_recipes_are_those_of_the_tables():
    assert preset("rotmnist_r4_sa").recipe == "rotmnist_sa" and preset("digits_r4_sa").recipe == "digits"
    assert preset("rotmnist_z2_cnn").recipe == "rotmnist_z2_cnn" and preset("rotmnist_r4_cnn").recipe == "rotmnist_cnn"
    assert preset("pcam_alpha_f_r4_cnn").recipe == "pcam_cnn" and preset("cifar10_vit").recipe == "vit"


def test_what_matters_in_training_only_leaves_the_logits_alone():
    for name in ("digits_r4_sa", "rotmnist_r4_cnn", "cifar10_z2_cnn", "rotmnist_vit"):
        torch.manual_seed(0)
        plain = gsa.create_model(name).eval()
        torch.manual_seed(0)
        dropped = gsa.create_model(
            name, **{keyword: 0.5 for keyword in preset(name).training_only if "dropout" in keyword}
        ).eval()
        images = pictures(name, 1)
        assert torch.equal(plain(images), dropped(images))


def test_unknown_keywords_and_names_are_refused_with_the_nearest():
    with pytest.raises(TypeError, match=r"no keyword 'neighborhood' \(the nearest is 'neighbourhood'\)"):
        gsa.create_model("rotmnist_r4_sa", neighborhood=3)
    with pytest.raises(TypeError, match="no keyword 'plan'"):  # keywords are flat
        gsa.create_model("rotmnist_r4_sa", plan=StagePlan())
    with pytest.raises(ValueError, match=r"unknown network 'rotmnist_r44_sa' \(the nearest is 'rotmnist_r4_sa'\)"):
        gsa.create_model("rotmnist_r44_sa")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"crops": (1,)}, r"one entry a block \(5\), but got 1"),
        ({"pools": (2,)}, "one entry a stage, but got 2, 2 and 1"),
        ({"blocks": (0, 5), "expansion": (2, 1)}, "without blocks cannot expand"),
        ({"blocks": (-1, 6)}, r"blocks must be a list of integers of at least 0, but got \(-1, 6\)"),
        ({"blocks": (2.0, 3)}, r"blocks must be a list of integers of at least 0, but got \(2.0, 3\)"),
        ({"blocks": 2}, "blocks must be a list of integers of at least 0, but got 2"),
        ({"blocks": ()}, "one entry a stage, but got 0, 0 and 2"),
        ({"crops": (-1, 0, 0, 0, 0)}, "crops must be a list of integers of at least 0"),
        ({"crops": (1.5, 0, 0, 0, 0)}, "crops must be a list of integers of at least 0"),
        ({"neighbourhoods": (3, 5)}, r"neighbourhoods needs one entry a block \(5\), but got 2"),
        ({"neighbourhoods": (3, 3, 3, 3, 4)}, "neighbourhood must be an odd number of pixels"),
        ({"neighbourhoods": (3, 3, 3, 3, 0)}, "neighbourhoods must be a list of integers of at least 1"),
        ({"border": "mirrored"}, "border must be one of"),
        ({"border": "zeros", "neighbourhood": None}, "border='zeros' needs a window"),
        ({"pools": (2.5, 0)}, "pools must be a list of integers of at least 0"),
        ({"pools": (-2, 0)}, "pools must be a list of integers of at least 0"),
        ({"pools": None}, "pools must be a list of integers of at least 0, but got None"),
        ({"expansion": (0, 1)}, "expansion must be a list of integers of at least 1"),
        ({"expansion": (1.5, 1)}, "expansion must be a list of integers of at least 1"),
        ({"expansion": (1,)}, "one entry a stage, but got 2, 1 and 2"),
        ({"channels": 0}, "channels must be a positive integer, but got 0"),
        ({"num_classes": 2.5}, "num_classes must be a positive integer, or 0 for no head, but got 2.5"),
        ({"num_classes": -1}, "num_classes must be a positive integer, or 0 for no head, but got -1"),
        ({"attention_dropout": "half"}, "attention_dropout must be a probability"),
        ({"pixels": "median"}, "pixels must be one of"),
        ({"poses": "sum"}, "poses must be one of"),
        ({"norm": "layer"}, "norm must be one of"),
        ({"encoding": "rotary", "form": "summed"}, "cannot serve form='summed'"),
        ({"neighbourhood": 6}, "odd number"),
    ],
)
def test_networks_refuse_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        gsa.create_model("rotmnist_r4_sa", **options)


@pytest.mark.parametrize("side", [64, 80])
def test_the_network_for_own_pictures_is_exact_on_every_side_that_16_divides(float64, side):
    network = gsa.create_model("imagefolder_gsa", num_classes=3).eval()
    assert [n for n in range(64, 225) if network.side_after(n)] == list(range(64, 225, 16))
    gsa.symmetry.assert_equivariant(network, torch.rand(2, 3, side, side), gsa.group("R4M"), tolerance=1e-10)
    with pytest.raises(ValueError, match="90 is not such a side; nearest ones that are: 80 or 96"):
        network(torch.rand(1, 3, 90, 90))


@pytest.mark.parametrize("name", [name for name in gsa.list_models() if name.split("_")[0] in ("digits", "rotmnist")])
def test_every_parameter_of_a_network_has_a_gradient(name):
    """DDP waits for all of them."""
    network = gsa.create_model(name).train()
    network(pictures(name, 2)).square().sum().backward()
    assert not [key for key, parameter in network.named_parameters() if parameter.grad is None]
