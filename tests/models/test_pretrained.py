"""Trained weights of the package: whole, small, as good as their card says, refused where they do not fit."""

import json
import re
import shutil

import pytest
import torch

import gsa
from gsa.data import DigitsDataModule
from gsa.models import list_pretrained, pretrained_folder, read_export


def test_the_networks_that_come_trained():
    assert list_pretrained() == ["digits_gsa", "digits_gsa_z2", "rotmnist_gsa"]


@pytest.mark.parametrize("name", list_pretrained())
def test_weights_are_small_and_have_a_card(name):
    folder = pretrained_folder(name)
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 300 * 1024
    card = (folder / "README.md").read_text()
    network = gsa.create_model(name, pretrained=True)
    assert f"{sum(p.numel() for p in network.parameters()):,} parameters" in card
    for word in ("data", "trained by", "python train.py", "seed", "accuracy", "licence"):
        assert word in card


@pytest.mark.parametrize("name", list_pretrained())
def test_a_trained_network_takes_raw_pictures(name):
    network = gsa.create_model(name, pretrained=True).eval()
    assert network.pictures.num_classes == 10
    raw = torch.rand(2, 1, network.pictures.image_size, network.pictures.image_size)
    logits = network(network.pictures.normalise(raw))
    assert logits.shape == (2, 10)
    torch.testing.assert_close(gsa.load(name)(network.pictures.normalise(raw)), logits)
    if network.group.order > 1:
        gsa.symmetry.assert_equivariant(network.double(), raw.double(), network.group)


def test_the_twin_without_turns_differs_in_its_group_alone():
    ours, twin = (read_export(pretrained_folder(name))[0] for name in ("digits_gsa", "digits_gsa_z2"))
    assert twin["pictures"] == ours["pictures"]
    assert {key for key in ours["model"] if ours["model"][key] != twin["model"][key]} == {"name", "group"}


@pytest.mark.parametrize("name", ["digits_gsa", "digits_gsa_z2"])
def test_it_is_as_good_as_its_card_says(name):
    network = gsa.create_model(name, pretrained=True).eval()
    data = DigitsDataModule()
    data.setup()
    pictures, labels = data.parts["test"].first(397)
    right = (network(network.pictures.normalise(pictures)).argmax(1) == labels).float().mean().item()
    (claimed,) = re.findall(r"([\d.]+) % test", (pretrained_folder(name) / "README.md").read_text())
    assert f"{100 * right:.2f}" == claimed


def test_other_classes_get_a_new_head_and_the_same_features():
    trained, other = (gsa.create_model("digits_gsa", pretrained=True, num_classes=n).eval() for n in (10, 3))
    assert other.pictures.classes == ("0", "1", "2") and other.training is False
    x = torch.rand(2, 1, 12, 12)
    assert other(x).shape == (2, 3)
    torch.testing.assert_close(other.forward_features(x), trained.forward_features(x))
    features = gsa.create_model("digits_gsa", pretrained=True, features_only=True).eval()(x)
    torch.testing.assert_close(features[-1], trained.forward_features(x))


def test_another_network_than_was_trained_is_refused():
    with pytest.raises(ValueError, match=r"another network than channels=8 \(trained: 20\)"):
        gsa.create_model("digits_gsa", pretrained=True, channels=8)
    with pytest.raises(ValueError, match=r"no trained weights of 'digits_r4_sa'; there are those of \['digits_gsa'"):
        gsa.create_model("digits_r4_sa", pretrained=True)
    for same in ({"dropout": 0.5}, {"group": gsa.group("R4")}, {"on_inexact": "warn"}, {"head_starts": "centre"}):
        assert gsa.create_model("digits_gsa", pretrained=True, **same).training
    with pytest.raises(ValueError, match="must be floating numbers"):
        gsa.create_model("digits_gsa", pretrained=True).pictures.normalise(torch.zeros(1, 1, 12, 12, dtype=torch.uint8))


def test_a_changed_file_is_refused(tmp_path, monkeypatch):
    shutil.copytree(pretrained_folder("digits_gsa"), tmp_path / "digits_gsa")
    config = json.loads((tmp_path / "digits_gsa" / "config.json").read_text())
    config["pictures"]["mean"] = [0.0]
    (tmp_path / "digits_gsa" / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("gsa.models._pretrained._FOLDER", tmp_path)
    with pytest.raises(ValueError, match="has changed; expected the digest"):
        gsa.create_model("digits_gsa", pretrained=True)


@pytest.mark.parametrize("newer", [{"stem_pool": 2}, {"bias": False}, {"border": "zeros"}])
def test_keywords_that_are_newer_than_the_weights_are_held_against_their_defaults(newer):
    config = json.loads((pretrained_folder("digits_gsa") / "config.json").read_text())
    assert not newer.keys() & config["model"].keys()
    with pytest.raises(ValueError, match="another network than " + next(iter(newer))):
        gsa.create_model("digits_gsa", pretrained=True, **newer)
