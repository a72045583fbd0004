"""Anybody's network is trained, resumed and tested like ours."""

from dataclasses import dataclass

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from PIL import Image
from torch import nn

import gsa
from gsa.cli import main
from gsa.runner import ConfigError, build, train
from gsa.saved import read_checkpoint
from tests.runs import of_few_steps


class Flat(nn.Module):
    """Knows nothing of gsa."""

    def __init__(self, in_channels, num_classes, width=4):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(in_channels, width, 3), nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(width, num_classes),
        )  # fmt: skip

    def forward(self, images):
        return self.layers(images)


def one_more(in_channels, num_classes):
    return Flat(in_channels, num_classes + 1)


def frozen(in_channels, num_classes):
    return Flat(in_channels, num_classes).requires_grad_(False)


def number(in_channels, num_classes):
    return 3


def no_channels(num_classes):
    return nn.Flatten()


@pytest.fixture
def own(configure):
    def of(*overrides, target=f"{__name__}.Flat", folder="run"):
        return configure(
            "model=own", f"model._target_={target}", "logger=none", "trainer.accelerator=cpu", "callbacks=quiet",
            "report=false", "trainer.max_epochs=2", "trainer.limit_train_batches=4",
            "scheduler=constant", *overrides, folder=folder,
        )  # fmt: skip

    return of


def test_it_is_trained_gone_on_with_and_tested(own, tmp_path):
    _, objects = train(own("+model.width=6"))
    assert objects["report"]["epochs"] == 2 and objects["network"].layers[0].weight.shape == (6, 1, 3, 3)
    checkpoint = tmp_path / "run" / "checkpoints" / "last.ckpt"
    with pytest.raises(ValueError, match=r"width \(6 there, 7 here\)"):
        train(own("+model.width=7", f"ckpt_path='{checkpoint}'", folder="other"))
    _, after = train(own("+model.width=6", f"ckpt_path='{checkpoint}'", "trainer.max_epochs=3"))
    assert after["report"]["epochs"] == 3
    weights = read_checkpoint(checkpoint)["state_dict"]
    for network in (Flat, Flat(1, 10, 6)):
        loaded = gsa.load(checkpoint, network=network)
        assert not loaded.training and loaded.pictures.image_size == 12
        assert all(torch.equal(weights[f"network.{name}"], value) for name, value in loaded.state_dict().items())
    with pytest.raises(
        ValueError,
        match=rf"built by '{__name__}.Flat', and not its code; .* gsa.load\(path, network=…\)",
    ):
        gsa.load(tmp_path / "run")
    with pytest.raises(ValueError, match="not those of this Flat: .* size mismatch for layers.0.weight"):
        gsa.load(checkpoint, network=Flat(1, 10, 5))
    with pytest.raises(ValueError, match="makes no network of the keywords in .*'width'.* unexpected keyword"):
        gsa.load(checkpoint, network=one_more)
    with pytest.raises(ValueError, match="must be an nn.Module, or make one, but got dict"):
        gsa.load(checkpoint, network=dict)


def turned(in_channels, num_classes, group="R2M", **ours):
    return gsa.models.GroupCNN(group, in_channels, num_classes, channels=2, **ours)


@pytest.mark.parametrize("ema", ["null", "0.9"])
def test_its_group_is_remembered(own, tmp_path, monkeypatch, ema):
    words = "trainer.max_epochs=1", f"ema={ema}", "data.size=28"
    train(own(*words, target=f"{__name__}.turned"))
    assert gsa.load(tmp_path / "run", network=turned).group.name == "R2M"
    asked = ["--checkpoint", str(tmp_path / "run"), "--group", "R2M"]
    assert main(["check", f"{__name__}:turned", *asked]) == 0 and main(["check", "digits_gsa", *asked]) == 2
    with pytest.raises(ValueError, match="LiftingConvolution of R4, but these weights are of R2M"):
        gsa.load(tmp_path / "run", network=turned(1, 10, "R4"))
    monkeypatch.setattr(turned, "__defaults__", ("R4",))
    best = tmp_path / "run" / "checkpoints" / "best.ckpt"
    for words_more in ((), ("train=false",)):
        with pytest.raises(ConfigError, match=r"has weights of R2M in layers.\d+, but this network is of R4 there"):
            train(own(*words, *words_more, f"ckpt_path='{best}'", target=f"{__name__}.turned", folder="other"))


class WithPictures(Flat):
    """Has something of its own by a name of ours, and a format of memory."""

    def __init__(self, in_channels, num_classes):
        super().__init__(in_channels, num_classes)
        self.pictures = nn.Identity()
        self.to(memory_format=torch.channels_last)

    def get_extra_state(self):
        return {"said": 1}

    def set_extra_state(self, state):
        assert state == {"said": 1}


def test_networks_with_states_of_their_own_are_loaded(own, tmp_path):
    train(own("trainer.max_epochs=1", "+model._convert_=all", target=f"{__name__}.WithPictures"))
    assert isinstance(gsa.load(tmp_path / "run", network=WithPictures).pictures, nn.Identity)


def test_objects_of_hydra_are_not_made_of_a_file(own, tmp_path):
    train(own("trainer.max_epochs=1", "+model.last._target_=torch.nn.Identity", target=f"{__name__}.ended"))
    with pytest.raises(ValueError, match="has keywords that Hydra made objects of, 'last': expected a network"):
        gsa.load(tmp_path / "run", network=ended)
    assert gsa.load(tmp_path / "run", network=ended(1, 10, nn.Identity()))


def ended(in_channels, num_classes, last):
    return nn.Sequential(Flat(in_channels, num_classes), last)


def test_its_run_is_asked_what_pictures_are(own, tmp_path, capsys):
    train(own("+model.width=6", "trainer.max_epochs=1"))
    Image.new("L", (12, 12), 99).save(tmp_path / "grey.png")
    asked = ["predict", str(tmp_path / "grey.png"), "--checkpoint", str(tmp_path / "run")]
    assert main([*asked, "--network", f"{__name__}:Flat", "--poses"]) == 0
    assert "grey.png" in capsys.readouterr().out
    assert main(asked) == 2 and "--network module:attribute" in capsys.readouterr().err
    assert main([*asked[:2], "--network", f"{__name__}:Flat"]) == 2
    assert "beside its --checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize("change, error, message", [
    ({"target": f"{__name__}.no_channels"}, ConfigError, "unexpected keyword argument 'in_channels'"),
    ({"target": f"{__name__}.Flatt"}, ConfigError, "cannot be imported"),
    ({"target": f"{__name__}.one_more"}, ConfigError, r"must return logits \[B, 10\], .* Flat returns \[1, 11\]"),
    ({"target": f"{__name__}.frozen"}, ConfigError, "must have parameters to train, but Flat has none"),
    ({"target": f"{__name__}.number"}, ConfigError, "must make an nn.Module, but makes int"),
    ({"target": "'???'"}, ConfigError, "model._target_ must be given"),
])  # fmt: skip
def test_what_is_no_network_is_refused(own, change, error, message):
    with pytest.raises(error, match=message):
        build(own(**change))


def test_how_to_choose_it_is_said(configure):
    """The keywords of a network of ours are still there."""
    with pytest.raises(ConfigError, match=r"unknown key 'model.name'.*: model=own model._target_=.*Flat$"):
        build(configure(f"model._target_={__name__}.Flat"))


@dataclass
class _Watching(Callback):
    """A callback that is a dataclass, of which Hydra would make a dictionary."""

    every: int = 1


def test_callbacks_that_are_dataclasses_are_handed_over_as_they_are(tmp_path):
    watching = "{_target_:tests.runner.test_own_networks._Watching,every:3}"
    run = build(of_few_steps(f"+callbacks.watching={watching}", folder=tmp_path))
    assert [callback.every for callback in run.trainer.callbacks if isinstance(callback, _Watching)] == [3]
