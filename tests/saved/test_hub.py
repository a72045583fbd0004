"""Networks of the Hub come with all of their weights or not at all."""

import json
import warnings

import pytest
import torch
from safetensors.torch import load_file, save_file

import gsa
from gsa.hub import HubNetwork

NAME = "digits_gsa"


@pytest.fixture
def folder(tmp_path):
    HubNetwork.of_run(NAME).save_pretrained(tmp_path)
    return tmp_path


def without_digest(folder):
    """As earlier versions have written it."""
    config = json.loads((folder / "config.json").read_text())
    for key in ("sha256", "version"):
        config.pop(key)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_network_goes_to_the_format_of_the_hub_and_back(folder):
    found = HubNetwork.from_pretrained(folder)
    pictures = torch.rand(2, 1, 12, 12)
    assert torch.equal(found(pictures), gsa.load(NAME)(pictures)) and not found.training
    assert found.pictures["data"] == "digits" and found.network.group.name == "R4"
    assert found.pretrained_cfg == gsa.load(NAME).pretrained_cfg
    assert found.no_weight_decay() == {f"network.{name}" for name in gsa.load(NAME).no_weight_decay()} != set()
    with pytest.raises(ValueError, match="HubNetwork.from_pretrained reads what it saved"):
        gsa.load(folder)
    found.save_pretrained(folder / "again")
    assert torch.equal(HubNetwork.from_pretrained(str(folder / "again"))(pictures), found(pictures))


def test_a_published_network_comes_back(tmp_path):
    """All of its keywords stand in the file, those that it overrules as well."""
    network = HubNetwork("digits_r4_sa", {"published": True}).eval()
    network.save_pretrained(tmp_path)
    pictures = torch.rand(2, 1, 12, 12)
    assert torch.equal(HubNetwork.from_pretrained(tmp_path).eval()(pictures), network(pictures))


@pytest.mark.parametrize("damage, message", [
    (lambda w: {f"other.{name}": value for name, value in w.items()}, "missing: lifting"),
    (lambda w: dict(list(w.items())[1:]), "missing"),
    (lambda w: w | {"network.more": torch.zeros(1)}, "not of this network: 'more'"),
    (lambda w: w | {"network.head.bias": torch.full((10,), torch.nan)}, "head.bias that are not finite"),
])  # fmt: skip
@pytest.mark.parametrize("has_digest", [True, False])
def test_weights_that_do_not_fit_are_refused_with_and_without_a_digest(folder, damage, message, has_digest):
    save_file(damage(load_file(folder / "model.safetensors")), folder / "model.safetensors")
    if not has_digest:
        without_digest(folder)
    with pytest.raises(ValueError, match="has changed; expected the digest" if has_digest else message):
        HubNetwork.from_pretrained(folder, strict=False)


def test_a_flipped_bit_is_noticed(folder):
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="has changed; expected the digest"):
        HubNetwork.from_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    assert load_file(file) and config["sha256"]  # planted: safetensors takes it


def test_a_folder_of_an_earlier_version_is_read_and_said_to_have_no_digest(folder):
    without_digest(folder)
    with pytest.warns(UserWarning, match="without a digest"):
        found = HubNetwork.from_pretrained(folder)
    pictures = torch.rand(2, 1, 12, 12)
    assert torch.equal(found(pictures), gsa.load(NAME)(pictures))


@pytest.mark.parametrize("config", ["{", "[]", '{"name": 3}', '{"name": "digits_gsa", "keywords": [1]}', "{}"])
def test_a_configuration_that_is_none_is_refused(folder, config):
    (folder / "config.json").write_text(config)
    with pytest.raises(ValueError, match=str(folder)):
        HubNetwork.from_pretrained(folder)


@pytest.mark.parametrize("gone", ["config.json", "model.safetensors"])
def test_files_that_are_not_there_are_named(folder, gone):
    (folder / gone).unlink()
    with pytest.raises(FileNotFoundError, match=gone):
        HubNetwork.from_pretrained(folder)


def test_what_is_pushed_has_its_digest(folder, monkeypatch):
    pushed = []
    monkeypatch.setattr(HubNetwork, "push_to_hub", lambda self, name, **options: pushed.append((name, options)))
    with warnings.catch_warnings():
        HubNetwork.of_run(NAME).save_pretrained(folder / "mine", push_to_hub=True, private=True)
    assert pushed == [("mine", {"private": True})]


def test_keywords_come_back_whatever_they_are_given_as(tmp_path):
    saved = HubNetwork("digits_gsa", {"group": gsa.group("R8"), "crops": (1, 1, 1)}).eval()
    saved.save_pretrained(tmp_path)
    back, x = HubNetwork.from_pretrained(tmp_path), torch.rand(2, 1, 12, 12)
    assert back.network.group == gsa.group("R8")
    assert saved.keywords.keys() == gsa.models.preset("digits_gsa").keywords.keys()  # all, so that presets may change
    torch.testing.assert_close(back(x), saved(x), rtol=0, atol=0)
    with pytest.raises(ValueError, match="names, numbers or lists of them: .*Linear"):
        HubNetwork("digits_gsa", {"encoding": torch.nn.Linear(1, 1)})
