"""Pictures whose channels are the pages of a TIFF, as microscopes write them; and grey ones."""

import csv

import numpy
import pytest
import torch
from PIL import Image

import gsa
from gsa import cli
from gsa.data import ImageFolderDataModule
from gsa.files.reading import PictureReader
from gsa.models import PictureFormat
from gsa.runner import ConfigError, train
from tests.data.folders import write_pictures

BRIGHTEST = (4000, 900, 200, 60000, 4000)  # of each page


def write_pages(path, pages=5, side=16, seed=0):
    """A TIFF of grey pages of 16 bits, as brightest as BRIGHTEST: the numbers, [pages, side, side]."""
    random = numpy.random.default_rng(seed)
    numbers = numpy.stack([random.integers(0, top + 1, (side, side)) for top in BRIGHTEST[:pages]]).astype(numpy.uint16)
    numbers[:, 0, 0] = BRIGHTEST[:pages]
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *others = map(Image.fromarray, numbers)
    first.save(path, save_all=True, append_images=others)
    return numbers


@pytest.fixture
def root(tmp_path):
    """Ten pictures of five pages in each of two classes."""
    for index in range(20):
        write_pages(tmp_path / "pages" / ("cat", "dog")[index % 2] / f"{index}.tif", seed=index)
    return tmp_path / "pages"


@pytest.mark.parametrize("white", [None, 4095, BRIGHTEST])
def test_every_page_is_a_channel_on_its_own_scale(tmp_path, white):
    numbers = write_pages(tmp_path / "a.tif")
    found = PictureReader(16, 5, white)(tmp_path / "a.tif")
    lightest = numpy.reshape(white or 65535, (-1, 1, 1))
    assert (found == ((numbers / lightest).clip(0, 1) * 255).round()).all() and found.dtype == numpy.uint8


def test_three_pages_are_channels_where_that_is_said_and_else_the_first_is_read(tmp_path):
    numbers = write_pages(tmp_path / "a.tif", pages=3)
    assert (PictureReader(16, 3, 255, pages=True)(tmp_path / "a.tif") == numbers.clip(0, 255)).all()
    assert (PictureReader(16, 3, 255)(tmp_path / "a.tif") == numbers[:1].clip(0, 255)).all()
    assert (PictureReader(16, 1, 255)(tmp_path / "a.tif") == numbers[:1].clip(0, 255)).all()


def test_white_is_one_number_or_one_for_each_page():
    with pytest.raises(ValueError, match=r"one for each of 5 pages, but got \[255, 255\]"):
        PictureReader(16, 5, (255, 255))
    with pytest.raises(ValueError, match=r"one number where channels are not pages, but got \[255\]"):
        PictureReader(16, 1, (255,))


def test_the_channels_are_those_of_the_files(root, recwarn):
    data = ImageFolderDataModule(root, 16, batch_size=4, channels="pages", white=BRIGHTEST)
    data.setup()
    assert data.in_channels == len(data.mean) == len(data.std) == 5 and not recwarn.list
    pictures, _ = next(iter(data.train_dataloader()))
    assert pictures.shape == (4, 5, 16, 16) and float(pictures.amax()) == 2
    assert (pictures.amax((0, 2, 3)) == 2).all()  # the brightest of each page, (1 − 0.5) / 0.25
    known = PictureFormat.of(data.picture_format())
    assert (known.in_channels, known.white, known.pages) == (5, BRIGHTEST, True)
    assert PictureFormat.of(known.plain()) == known


def test_one_page_is_a_grey_picture(tmp_path):
    for index in range(20):
        write_pages(tmp_path / ("cat", "dog")[index % 2] / f"{index}.tif", pages=1, seed=index)
    data = ImageFolderDataModule(tmp_path, 16, batch_size=4, channels="pages", white=[4000])
    data.setup()
    assert (data.in_channels, data.white) == (1, 4000)


def test_grey_pictures_have_one_channel(tmp_path):
    write_pictures(tmp_path, parts=("all",))
    data = ImageFolderDataModule(tmp_path / "all", 16, batch_size=4, channels="grey")
    pictures, _ = next(iter(data.train_dataloader()))
    assert pictures.shape == (4, 1, 16, 16) and "pages" not in data.picture_format()


def test_dark_pages_are_told_of_one_by_one(root):
    with pytest.warns(
        UserWarning, match=r"up to \[4000,900,200,60000,4000\] of 65535 only, .*=\[4095,1023,255,65535,4"
    ):
        ImageFolderDataModule(root, 16, batch_size=4, channels="pages").setup()
    with pytest.warns(UserWarning, match=r"above data.white=\[4000,900,199,60000,4000\] are all white"):
        white = [4000, 900, 199, 60000, 4000]
        ImageFolderDataModule(root, 16, batch_size=4, channels="pages", white=white).setup()


def few_pages(path):
    write_pages(path, pages=3)


def coloured(path):
    pages = [Image.new("L", (16, 16))] * 4
    pages[0].save(path, save_all=True, append_images=[*pages[:3], Image.new("RGB", (16, 16))])


def too_many(path):
    pages = [Image.new("L", (1, 1))] * 1001
    pages[0].save(path, save_all=True, append_images=pages[1:])


def without_pages(path):
    Image.new("L", (16, 16)).save(path.with_suffix(".png"))


@pytest.mark.parametrize("change, message", [
    (few_pages, "19.tif .* must have 5 pages, a channel each, but has 3"),
    (coloured, "19.tif .* must be grey, a channel each, but page 5 is RGB: save them apart"),
    (too_many, "19.tif .* must have at most 1000 pages, but has 1001"),
    (without_pages, "19.png .* must have 5 pages, a channel each, but has 1"),
])  # fmt: skip
def test_a_file_of_other_channels_is_one_that_cannot_be_read(root, change, message):
    change(root / "dog" / "19.tif")
    with pytest.raises(ValueError, match=message):
        ImageFolderDataModule(root, 16, batch_size=4, channels="pages", white=[65535] * 5).setup()


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b"no picture"), few_pages])
def test_a_first_file_that_is_not_as_the_others_says_nothing_of_them(root, spoil):
    spoil(root / "cat" / "0.tif")
    data = ImageFolderDataModule(root, 16, batch_size=4, channels="pages", white=[65535] * 5, unreadable="skip")
    with pytest.warns(UserWarning, match="1 of 20 files are left out"):
        data.setup()
    assert data.in_channels == 5 and data.left_out == [(str(root / "cat" / "0.tif"), 0)]
    assert data.describe()["left_out"] == 1


@pytest.mark.parametrize("options, message", [
    ({"channels": "color"}, "channels must be one of .* but got 'color'"),
    ({"channels": "pages", "augmentation": ["randaugment"]}, "without randaugment"),
    ({"channels": "pages", "white": [255, 0]}, r"at least 1, or a list of them for pages, or None, but got \[255, 0\]"),
    ({"white": [255, 255, 255]}, r"at least 1, or None, but got \[255, 255, 255\]"),
])  # fmt: skip
def test_what_does_not_go_with_channels_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ImageFolderDataModule(**options)


OWN = ("data=imagefolder", "data.size=16", "data.batch_size=4", "trainer.max_epochs=1", "data.channels=pages")


@pytest.mark.filterwarnings("ignore:.*files ")
def test_a_run_on_pages_predicts_what_it_has_tested(small, root, tmp_path, capsys):
    """Planted: files of fewer pages, and a test on colours."""
    own = (*OWN, f"data.root={root}", "data.white=[4000,900,200,60000,4000]")
    train(small(*own, "trainer.limit_test_batches=1.0", "report=true"))
    assert "channels     5, the pages of every file" in capsys.readouterr().out
    run = tmp_path / "run"
    assert {"orbit.png", "attention.png"} <= {picture.name for picture in run.glob("*.png")}
    tested = list(csv.DictReader((run / "test.csv").read_text("utf-8-sig").splitlines()))
    assert cli.main(["predict", str(root), "--checkpoint", str(run), "--csv", str(tmp_path / "out.csv")]) == 0
    said = {row["path"]: row for row in csv.DictReader((tmp_path / "out.csv").read_text("utf-8-sig").splitlines())}
    network = gsa.load(run)
    for row in tested:
        picture = network.pictures.normalise(network.pictures.read(root / row["path"])[None])
        assert network(picture).softmax(-1)[0, 0].item() == pytest.approx(float(row["cat"]), abs=1e-5)
        assert float(said[str(root / row["path"])]["cat"]) == pytest.approx(float(row["cat"]), abs=1e-5)
    write_pages(tmp_path / "few.tif", pages=3)
    assert cli.main(["predict", str(tmp_path / "few.tif"), "--checkpoint", str(run)]) == 2
    assert "must have 5 pages, a channel each, but has 3" in capsys.readouterr().err
    ckpt = f"ckpt_path='{run / 'checkpoints' / 'last.ckpt'}'"
    refused = pytest.raises(
        ConfigError, match="with data.channels=pages, but it is colour here: say data.channels=pages"
    )
    with pytest.warns(UserWarning, match="of which only the first is read"), refused:
        train(small(*OWN[:-1], f"data.root={root}", ckpt, "train=false", folder="other"))


def test_pictures_of_many_channels_are_drawn_by_their_mean():
    from gsa.viz._figure import as_shown

    picture = torch.rand(5, 4, 6)
    assert torch.allclose(torch.from_numpy(as_shown(picture)), picture.double().mean(0))
    assert as_shown(picture[:3]).shape == (4, 6, 3) and (as_shown(picture[:1]) == picture[0].double().numpy()).all()
