"""What is told of files beside what the network says of them."""

import numpy
import pytest
import torch
from PIL import Image

from gsa import cli
from gsa.cli import _predict
from gsa.data import DigitsDataModule
from gsa.models import PictureFormat, create_model
from gsa.saved import Saved, read
from tests.cli.conftest import CLASSES
from tests.files.test_pictures import noise


def test_negatives_are_told_of_and_inverted(tmp_path, capsys):
    """Dark digits on light paper, one light on dark among them."""
    data = DigitsDataModule()
    data.setup()
    raw, labels = data.parts["test"].first(4)
    for index, picture in enumerate(raw):
        dark = 255 * (picture[0] if index == 3 else 1 - picture[0])
        Image.fromarray(dark.round().byte().numpy()).save(tmp_path / f"{index}.png")
    words = ["predict", *(str(tmp_path / f"{index}.png") for index in range(4)), "--checkpoint", "digits_gsa"]
    assert cli.main(words) == 0
    said = capsys.readouterr()
    assert "3 of 4 pictures look like negatives" in said.err and "mostly dark" in said.err and "0.png" in said.err
    assert cli.main([*words, "--invert"]) == 0
    said = capsys.readouterr()
    assert [int(line.split(": ")[1][0]) for line in said.out.splitlines()][:3] == labels[:3].tolist()
    assert "1 of 4 pictures look like negatives" in said.err and "3.png" in said.err


@pytest.mark.parametrize("mean, told", [(0.13, True), (0.45, False)])
def test_where_pictures_are_as_light_as_their_negatives_nothing_is_told(mean, told):
    known = PictureFormat("digits", 1, 12, 3, (mean,), (0.25,), CLASSES)
    assert _predict._is_negative(torch.full((1, 12, 12), 1 - mean), known) is told


def test_files_with_several_pages_are_named(tmp_path, capsys):
    page = Image.new("L", (12, 12))
    page.save(tmp_path / "stack.tif", save_all=True, append_images=[page])
    page.save(tmp_path / "one.tif")
    assert cli.main(["predict", str(tmp_path), "--checkpoint", "digits_gsa"]) == 0
    said = capsys.readouterr().err
    assert "of 1 with several pages the first was read:\n    " in said and "stack.tif" in said and "one.tif" not in said


def test_pictures_of_another_scale_than_the_files_of_the_training_are_named(tmp_path, monkeypatch, capsys):
    """Planted: folders of pictures of one's own have no side of their own."""
    network = create_model("pcam_z2_sa").eval()
    for side in (96, 288):
        Image.fromarray(noise(side, side, (3,))).save(tmp_path / f"{side}.png")
    for data, told in (("pcam", True), ("imagefolder", False)):
        known = PictureFormat(data, 3, 96, 2, (0.5,) * 3, (0.25,) * 3, ("no tumour", "tumour"))
        monkeypatch.setattr(_predict, "read", lambda *_, known=known: Saved(network, {}, known))
        assert cli.main(["predict", str(tmp_path), "--checkpoint", "mine"]) == 0
        said = capsys.readouterr().err
        assert ("1 of 2 pictures are not 96×96 and were scaled, such as " in said and "288.png" in said) is told


def test_files_with_transparent_pixels_are_named(tmp_path, capsys):
    for name, mode in (("strokes", "RGBA"), ("opaque", "RGB")):
        Image.new(mode, (12, 12)).save(tmp_path / f"{name}.png")
    assert cli.main(["predict", str(tmp_path), "--checkpoint", "digits_gsa"]) == 0
    said = capsys.readouterr().err
    assert "1 with transparent pixels, of which the colour beneath is read" in said
    assert "strokes.png" in said and "opaque.png" not in said


def test_files_that_are_lighter_than_in_training_are_told_of(network, tmp_path, capsys, monkeypatch):
    """Planted: one that is not; one hot pixel is none."""
    pixels = numpy.full((40, 40), 4000, dtype=numpy.uint16)
    pixels[0, 0] = 60000
    Image.fromarray(pixels).save(tmp_path / "a.png")
    Image.fromarray(pixels * 4).save(tmp_path / "b.png")
    known = PictureFormat("imagefolder", 1, 12, 3, (0.5,), (0.5,), CLASSES, white=4095)
    saved = read("digits_gsa")
    monkeypatch.setattr(_predict, "read", lambda *_: type(saved)(network.eval(), saved.model, known))
    assert cli.main(["predict", str(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert "1 with values above what was white in training (4095):" in said and said.count("b.png") == 1


def test_a_note_names_a_few_files(network, tmp_path, capsys):
    for number in range(7):
        pages = [Image.new("L", (12, 12), number)] * 2
        pages[0].save(tmp_path / f"{number}.tif", save_all=True, append_images=pages[1:])
    cli.main(["predict", str(tmp_path)])
    said = capsys.readouterr().err
    assert "of 7 with several pages the first was read" in said and "4.tif" in said and "5.tif" not in said
    assert "… and 2 more" in said


def test_files_that_are_passed_over_empty_and_absent_ones_are_told_of(network, folder, capsys):
    (folder / "x.heic").write_bytes(b"a picture of another kind")
    (folder / "empty.png").write_bytes(b"")
    assert cli.main(["predict", str(folder), str(folder / "nothere.png")]) == 1
    said = capsys.readouterr().err
    assert "2 are passed over (.txt: 1, .heic: 1); expected .apng" in said
    assert "empty.png cannot be read as a picture: it is empty" in said
    assert "nothere.png cannot be read as a picture: there is no such file" in said


def test_linked_folders_are_entered_once_and_litter_is_no_news(network, folder, tmp_path, capsys):
    """Planted: a link out of the folder, one back into it, and one to what it stands in."""
    (tmp_path / "elsewhere").mkdir()
    (folder / "a.tif").rename(tmp_path / "elsewhere" / "far.tif")
    (folder / "c").symlink_to(tmp_path / "elsewhere")
    (folder / "c" / "back").symlink_to(folder)
    (folder / "up").symlink_to(tmp_path.parent)
    (folder / "readme.txt").unlink()
    for name in ("Thumbs.db", "b/.DS_Store", "b/desktop.ini"):
        (folder / name).write_bytes(b"litter")
    assert cli.main(["predict", str(folder)]) == 1
    said = capsys.readouterr()
    names = ["b/1.jpg", "b/2.PNG", "c/far.tif", "m.gif", "z, or not.png"]
    assert [line.rsplit(": ", 1)[0] for line in said.out.splitlines()] == [str(folder / name) for name in names]
    assert "passed over" not in said.err


def test_who_speaks_is_told_where_nobody_was_chosen(network, folder, capsys):
    assert cli.main(["predict", str(folder / "a.tif")]) == 0
    told = "gsa: by rotmnist_gsa of the package, which knows digits; --checkpoint outputs/… for one of yours\n"
    assert capsys.readouterr().err == told
    assert cli.main(["predict", str(folder / "a.tif"), "--checkpoint", "digits_gsa"]) == 0
    assert capsys.readouterr().err == ""
