"""gsa check: shifts, gradients and the picture; turns are in tests/symmetry/test_layers.py."""

import json
import re
from dataclasses import replace

import pytest
import torch
from PIL import Image
from torch import nn

import gsa
from gsa import cli, models, viz
from gsa.cli._subject import subject
from gsa.saved import read
from tests.symmetry.test_actions import perturbed_vit

VIT = [f"{perturbed_vit.__module__}:{perturbed_vit.__name__}", "--input", "3,16,16"]


def test_a_shift_is_a_claim(capsys):
    assert cli.main(["check", *VIT, "--shift", "4,0", "--shift=0,-8"]) == 1
    said = capsys.readouterr().out
    assert "first broken in encoder, before encoder.dropout" in said  # where positions are added
    assert "4,0" in said and "0,-8" in said and "BROKEN" in said
    patches = ["torch.nn:Identity", "--input", "3,16,16"]
    assert cli.main(["check", *patches, "--shift", "4,0", "--margin", "2", "--json", "--tolerance", "1e-3"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["group"] == "shifts" and told["claimed"] and told["exact"] == ["4,0"] and not told["broken"]
    assert told["tolerance"] == 1e-3


class Stretched(nn.Module):
    """Twice as long in x, which half turns keep, and quarter turns do not."""

    def forward(self, vectors):
        return vectors * torch.tensor([2.0, 1.0], dtype=vectors.dtype)[:, None, None]


FIELD = nn.Sequential(gsa.nn.FieldsToPoses("R4"), gsa.nn.PosesToFields("R4"), Stretched())


def test_vectors_turn_along(capsys):
    field = ["check", "tests.cli.test_check:FIELD", "--input", "2,8,8", "--group"]
    assert cli.main([*field, "R2", "--takes", "vector", "--returns", "vector"]) == 0
    assert cli.main([*field, "R2", "--returns", "vector"]) == 1
    assert cli.main([*field, "R4", "--takes", "vector", "--returns", "vector"]) == 1
    assert "first broken by 2: 0.0e+00 before it" in capsys.readouterr().out
    assert (
        cli.main([*field, "R4", "--takes", "axis", "--returns", "axis"]) == 0
    )  # axes, which quarter turns turn by half
    capsys.readouterr()
    for words, said in (
        (["--takes", "vector"], "--takes and --returns need --group"),
        (["--returns", "scalar,2", "--shift", "1,0"], "--returns is for --group, but got --returns scalar,2"),
        (["--returns", "arrow", "--group", "R4"], "a field is one of ['scalar', 'pseudoscalar', 'pair', 'vector'"),
    ):
        assert cli.main(["check", "torch.nn:Identity", "--input", "2,8,8", *words]) == 2
        assert said in capsys.readouterr().err


def test_gradients_are_checked_and_drawn(capsys, tmp_path, monkeypatch):
    picture, draw, depths = tmp_path / "layers.png", viz.draw_layers, []
    monkeypatch.setattr(viz, "draw_layers", lambda report, depth: depths.append(depth) or draw(report, depth))
    said = [*VIT, "--shift", "4,0", "--backward"]
    assert cli.main(["check", *said, "--depth", "2", "--picture", str(picture)]) == 1
    assert "first broken on the way back at encoder.pos_embedding" in capsys.readouterr().out
    with Image.open(picture) as drawn:
        assert drawn.size[0] == 7 * 150 and depths == [2]
    assert cli.main(["check", *said, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["backward"] and told["first_broken"] == "encoder.pos_embedding"
    assert cli.main(["check", "digits_r4_sa", "--backward"]) == 0


@pytest.mark.parametrize("arguments, message", [
    (["--shift", "4"], "--shift must be pixels down and right, such as 16,0, but got '4'"),
    (["--shift", "4,0", "--group", "R4"], "--group, --shift or --permute, but got --group and --shift"),
    *((["--tolerance", value], "--tolerance must be positive and finite, but got") for value in ("nan", "-1", "0")),
    (["--depth", "-1"], "--depth must be at least 0, for the whole network alone, but got -1"),
    (["--picture", "layers.jpeg2"], "--picture must end in .png, .svg or .pdf, but got layers.jpeg2"),
    (["--margin", "2"], "--margin is for --shift"),
    (["--shift", "4,0", "--margin", "8"], "a margin of 8 leaves nothing of a 16×16 picture"),
])  # fmt: skip
def test_what_cannot_be_checked_is_refused(arguments, message, capsys):
    assert cli.main(["check", *VIT, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_pictures_of_any_network_by_name_are_of_its_size(monkeypatch, capsys):
    monkeypatch.setitem(models.PRESETS, "mine", replace(models.preset("digits_r4_sa"), data="mine", image_size=13))
    assert cli.main(["check", "mine"]) == 2
    assert "got 13×13 images, and 13 is not such a side" in capsys.readouterr().err
    assert cli.main(["check", "mine", "--input", "1,12,12"]) == 0


def test_a_trained_network_is_shown_pictures_like_those_of_its_training():
    pictures = torch.rand(3, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    assert torch.equal(subject("digits_gsa", None)[1], read("digits_gsa").pictures.normalise(pictures))


@pytest.mark.parametrize("what, message", [
    ("torch.nn:CrossEntropyLoss", "must take one tensor of floating numbers, of the shape [3, 1, 9, 9] here (--input)"),
    ("nowhere:build", "there is no module 'nowhere' to import here"),
    ("tests/nowhere.py:build", "say tests/nowhere:build, as Python imports it"),
])  # fmt: skip
def test_what_cannot_be_run_is_no_finding(what, message, capsys):
    assert cli.main(["check", what, "--input", "1,9,9"]) == 2
    assert message in capsys.readouterr().err


class InFloat32(nn.Module):
    """Makes what it multiplies by of a precision of its own."""

    def forward(self, x):
        return x.flatten(1) @ torch.ones(81, 3)


def group_convolution():
    return gsa.nn.GroupConvolution("R4", 2, 3, 3)


def test_features_are_given_and_a_network_in_float32_is_told_of(capsys):
    layer = f"{__name__}:group_convolution"
    assert cli.main(["check", layer, "--input", "2,4,9,9", "--group", "R4"]) == 0
    assert cli.main(["check", layer, "--input", "2,4,9,9,9", "--group", "R4"]) == 2
    assert "or of features with poses 8,4,64,64, but got '2,4,9,9,9'" in capsys.readouterr().err
    assert cli.main(["check", f"{__name__}:InFloat32", "--input", "1,9,9", "--group", "R4"]) == 2
    assert "(a network is checked in float64: what it makes" in capsys.readouterr().err


class unet(nn.Module):  # as its first layer is called
    """Broken, but for a layer that nobody hears of."""

    def __init__(self):
        super().__init__()
        self.unet = nn.Conv2d(3, 3, 3, padding=1)
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())

    def forward(self, x):
        y = self.unet(x)
        self.pool(torch.ones_like(x) * x.mean())
        return y


def test_a_network_is_not_taken_for_the_layer_that_is_called_like_it(capsys):
    assert cli.main(["check", f"{__name__}:unet", "--input", "3,8,8", "--group", "R4"]) == 1
    assert "unet (whole)" in capsys.readouterr().out


class Crooked(gsa.encodings.FunctionalEncoding):
    """Adds what no pose acts on."""

    def spatial(self, offsets):
        return super().spatial(offsets) + offsets[..., :1]


def crooked():
    return gsa.create_model("digits_r4_sa", encoding=Crooked)


def straight():
    return gsa.create_model("digits_r4_sa")


def test_an_imported_network_of_ours_is_held_to_its_own_group(capsys):
    assert cli.main(["check", f"{__name__}:crooked", "--input", "1,12,12"]) == 1
    assert "first broken in lifting" in capsys.readouterr().out
    assert cli.main(["check", f"{__name__}:straight", "--input", "1,12,12"]) == 0
    told = capsys.readouterr().out
    assert "R4" in told and re.search(r"90° +\d\.\de-1\d  exact", told)  # in float64


class NotHere:
    """What needs arguments to be made."""

    def __init__(self, size):
        raise AssertionError


@pytest.mark.parametrize("what, message", [
    (f"{__name__}:NotHere", "must make a network when it is called without arguments, but raised TypeError"),
    ("torch.nn:Linear", "must make a network when it is called without arguments, but raised TypeError"),
    (".mine:network", "cannot be imported: TypeError"),
    ("broken_on_purpose:network", "cannot be imported: SyntaxError"),
])  # fmt: skip
def test_what_cannot_be_made_is_not_a_broken_symmetry(capsys, tmp_path, monkeypatch, what, message):
    (tmp_path / "broken_on_purpose.py").write_text("def network(:")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", what, "--input", "3,8,8", "--group", "R4"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("group", ["Z2", "R3"])
def test_a_group_without_exact_elements_holds_nothing(capsys, group):
    assert cli.main(["check", "digits_r4_sa", "--group", group]) == 2
    assert f"of {group} no element but the identity maps the pixel grid to itself" in capsys.readouterr().err


def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_measured(capsys, tmp_path):
    assert cli.main(["check", "digits_r4_sa", "--picture", str(tmp_path / "nowhere" / "x.png")]) == 2
    told = capsys.readouterr()
    assert not told.out and "--picture must be a file in a folder that can be written, but got" in told.err


def test_a_gradient_is_broken_though_a_margin_leaves_nothing_of_that_of_the_input(monkeypatch, capsys):
    """Planted: that one alone is looked at."""
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GELU(), nn.Flatten(), nn.Linear(256, 3))
    monkeypatch.setattr("tests.cli.test_check.NET", net, raising=False)
    words = ["check", "tests.cli.test_check:NET", "--input", "1,8,8", "--shift", "4,0", "--margin", "3", "--backward"]
    assert cli.main(words) == 1 and "–        BROKEN" in capsys.readouterr().out
