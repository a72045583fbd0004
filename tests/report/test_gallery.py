"""A report is finished whatever cannot be drawn."""

from types import SimpleNamespace

import pytest
import torch

from gsa import viz
from gsa.data import DigitsDataModule
from gsa.nn import LiftingSelfAttention
from gsa.report._gallery import _LARGEST_MAP, GALLERY, bytes_of_maps, draw_gallery
from gsa.report._letters import class_labels, short_label
from gsa.runner import train

OF_THE_GROUP = ("report=true", "model=digits_r4_sa", "trainer.max_epochs=1")


def refuse(*_):
    raise ZeroDivisionError("planted")


def test_a_picture_that_cannot_be_drawn_is_left_out(small, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(viz, "draw_orbit", refuse)
    _, objects = train(small(*OF_THE_GROUP))
    drawn = {file.stem for file in (tmp_path / "run").glob("*.png")}
    assert "orbit" not in drawn and {"learning", "attention", "confusion"} <= drawn
    assert (tmp_path / "run" / "report.json").exists() and objects["report"]["epochs"] == 1
    assert "orbit.png could not be drawn: planted" in caplog.text


def test_a_network_of_half_precision_is_drawn(small, tmp_path):
    placed = ("model=digits_gsa", "model.positional_heads=1", "model.head_dim=6")
    train(small("report=true", *placed, "trainer.max_epochs=1", "trainer.precision=bf16-true"))
    assert {file.stem for file in (tmp_path / "run").glob("*.png")} == set(GALLERY)


@pytest.mark.parametrize("name, label", [
    ("$5_ & $10_a", r"\$5_ & \$10_a"), ("caf\udce9", r"caf\udce9"), ("two\nlines", r"two\nlines"),
    ("long " * 30, "long long …ong long "), ("cat", "cat"),
])  # fmt: skip
def test_classes_are_drawn_whatever_they_are_called(tmp_path, monkeypatch, name, label):
    """Planted: what matplotlib takes for a formula, and what it cannot write."""
    captions = []
    draw = viz.draw_mistakes
    monkeypatch.setattr(viz, "draw_mistakes", lambda pictures, found: captions.extend(found) or draw(pictures, found))
    classes = [name, *map(str, range(1, 10))]
    monkeypatch.setattr(DigitsDataModule, "classes", classes)
    data = DigitsDataModule()
    data.setup()
    subject = SimpleNamespace(network=torch.nn.Flatten(), data=data)
    mistake = SimpleNamespace(picture=torch.zeros(1, 8, 8), label=0, predicted=1, confidence=0.9)
    findings = SimpleNamespace(confusion=torch.eye(10, dtype=torch.int64), mistakes=[mistake])
    report = {"history": [], "equivariance_error_before": {}, "equivariance_error": {}}
    assert not {"confusion", "mistakes"} & set(draw_gallery(tmp_path, report, subject, findings))
    assert captions == [f"{label}, taken for\n1 (90 %)"]


def test_attention_maps_that_would_not_fit_are_not_written_out(small, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("gsa.report._gallery._LARGEST_MAP", 1000)
    monkeypatch.setattr(LiftingSelfAttention, "attention", refuse)
    train(small(*OF_THE_GROUP))
    assert "attention.png could not be drawn: the attention maps of a 12×12 picture" in caplog.text
    assert "planted" not in caplog.text and (tmp_path / "run" / "report.json").exists()


@pytest.mark.parametrize("neighbourhood, side, fits", [(None, 96, False), (None, 12, True), (5, 96, True)])
def test_the_maps_of_global_attention_are_measured_before_they_are_made(neighbourhood, side, fits):
    layer = LiftingSelfAttention("R4", 1, 4, neighbourhood=neighbourhood)
    assert (bytes_of_maps(layer, side, side) <= _LARGEST_MAP) == fits


def test_what_is_measured_is_what_is_made():
    layer = LiftingSelfAttention("R4", 1, 4, num_heads=2, neighbourhood=None)
    maps = layer.attention(torch.rand(1, 1, 6, 5))
    assert maps.numel() * maps.element_size() == bytes_of_maps(layer, 6, 5)


@pytest.mark.parametrize("name, label", [
    ("cat", "cat"), ("$5 & $10", r"\$5 & \$10"), ("new\nline", r"new\nline"), ("a\udce9", r"a\udce9"), (7, "7"),
    ("a" * 10 + "b" * 10, "a" * 10 + "b" * 10), ("a" * 10 + "b" * 90 + "c" * 9, "a" * 10 + "…" + "c" * 9),
    ("$" * 30, r"\$" * 10 + "…" + r"\$" * 9),
])  # fmt: skip
def test_labels_are_short_and_no_formulas(name, label):
    """Planted: a name that fits, to the letter."""
    assert short_label(name) == label


def test_names_that_no_font_has_are_numbers(monkeypatch):
    """Planted: only matplotlib's own font, which has Greek and Arabic letters, but no Chinese ones."""
    monkeypatch.setattr("gsa.report._letters._FONTS", ())
    assert class_labels(["Δ cell", "猫", "قطة"]) == ["Δ cell", "no. 1", "\u200eقطة\u200e"]
