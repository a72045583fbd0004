"""Pictures of people: one reader, a few formats, one error."""

import os
import struct
import zlib

import numpy
import PIL
import pytest
from PIL import EpsImagePlugin, Image, ImageOps
from torchvision.transforms import functional as F

from gsa import cli
from gsa.cli._predict import _read
from gsa.data import ImageFolderDataModule
from gsa.files import printable
from gsa.files.brightness import brightest
from gsa.files.folders import ENDINGS
from gsa.files.pictures import FORMATS, read_picture
from gsa.models import PictureFormat, create_model
from gsa.saved import Saved
from tests.data.test_image_folder import write_pictures

ORIENTATION = 274  # a tag of EXIF


def noise(height, width, channels=(3,), seed=0):
    return numpy.random.default_rng(seed).integers(0, 256, (height, width, *channels), dtype=numpy.uint8)


@pytest.mark.parametrize("mode, channels", [("RGB", (3,)), ("L", ()), ("RGB", (4,)), ("L", (3,))])
@pytest.mark.parametrize("height, width", [(9, 9), (16, 16), (40, 33), (33, 40), (7, 61), (17, 16), (1, 5)])
def test_the_shorter_side_is_scaled_and_the_centre_cut_out(tmp_path, height, width, mode, channels):
    Image.fromarray(noise(height, width, channels)).save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as opened:
        expected = F.center_crop(F.resize(opened.convert(mode), 16), 16)
    assert read_picture(tmp_path / "a.png", mode, 16).tobytes() == expected.tobytes()


@pytest.mark.parametrize("size", [16, 15])
@pytest.mark.parametrize("height, width", [(9, 9), (40, 33), (33, 40), (7, 61), (17, 16), (1, 5), (1, 900)])
def test_the_whole_of_a_picture_is_turned_where_its_file_is(tmp_path, height, width, size):
    """On grey, and as large as it can be."""
    pixels, mode = numpy.full((height, width, 3), 255, numpy.uint8), "RGB"
    Image.fromarray(pixels).save(tmp_path / "a.png")
    Image.fromarray(pixels.swapaxes(0, 1)).save(tmp_path / "b.png")
    found, other = (numpy.asarray(read_picture(tmp_path / name, mode, size, whole=True)) for name in ("a.png", "b.png"))
    for turns in (0, 2):
        assert (numpy.rot90(found, turns) == found).all() and (numpy.rot90(found, turns + 1) == other).all()
    shown = (found == 255).all(2)
    assert (shown | (found == 128).all(2)).all() and max(shown.any(0).sum(), shown.any(1).sum()) == size
    assert abs(min(shown.any(0).sum(), shown.any(1).sum()) - size * min(height, width) / max(height, width)) <= 2


def test_what_lacks_beside_a_picture_would_not_be_alike_where_pillow_adds_it():
    """Planted: what the test above would notice."""
    padded = ImageOps.pad(Image.new("L", (40, 33), 255), (16, 16), color=128)
    assert padded.rotate(180) != padded


def test_the_whole_of_a_square_is_what_its_centre_is(tmp_path):
    Image.fromarray(noise(33, 33)).save(tmp_path / "a.png")
    centre, whole = (read_picture(tmp_path / "a.png", "RGB", 16, whole=whole).tobytes() for whole in (False, True))
    assert centre == whole


@pytest.mark.parametrize("kind", FORMATS)
def test_the_formats(tmp_path, kind):
    frames = [Image.fromarray(noise(2, 2, seed=seed)).resize((16, 16), Image.Resampling.NEAREST) for seed in (0, 1)]
    animated = {"save_all": True, "append_images": frames[1:]} if kind == "GIF" else {}
    frames[0].save(tmp_path / "picture", kind, **animated)
    found = numpy.asarray(read_picture(tmp_path / "picture", "RGB", 16)).astype(int)
    first, second = (abs(found - numpy.asarray(frame)).mean() for frame in frames)
    assert first < second / 2 and (first == 0 or kind in ("JPEG", "WEBP"))


def test_the_endings_are_those_of_the_formats():
    assert set(ENDINGS) == {ending for ending, kind in Image.registered_extensions().items() if kind in FORMATS}


def test_a_photograph_with_others_behind_it_is_a_jpeg(tmp_path):
    Image.fromarray(noise(16, 16)).save(
        tmp_path / "a.jpg", "MPO", save_all=True, append_images=[Image.fromarray(noise(16, 16, seed=1))]
    )
    assert read_picture(tmp_path / "a.jpg", "RGB", 8).size == (8, 8)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_a_picture_is_upright_as_its_camera_has_noted(tmp_path, kind):
    upright = numpy.zeros((32, 32), dtype=numpy.uint8)
    upright[:8, 8:16], upright[:8, 16:] = 255, 120
    stored = {  # orientation → what the camera writes
        1: upright, 2: upright[:, ::-1], 3: numpy.rot90(upright, 2), 4: upright[::-1], 5: upright.T,
        6: numpy.rot90(upright), 7: numpy.rot90(upright, 2).T, 8: numpy.rot90(upright, -1),
    }  # fmt: skip
    for orientation, pixels in stored.items():
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        Image.fromarray(pixels.copy()).convert("RGB").save(tmp_path / "picture", kind, exif=exif, quality=95)
        found = numpy.asarray(read_picture(tmp_path / "picture", "L", 32)).astype(int)
        assert abs(found - upright).mean() < 3, orientation
    Image.fromarray(upright).convert("RGB").save(tmp_path / "picture", "JPEG", exif=b"Exif\0\0damaged")
    assert abs(numpy.asarray(read_picture(tmp_path / "picture", "L", 32)).astype(int) - upright).mean() < 3


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize(
    "kind", ["L", "1", "P", "LA", "RGB", "RGBA", "CMYK", "YCbCr", "I;16", "I;16B", "I", "u32", "F"]
)
def test_every_kind_of_picture_comes_out_on_the_same_scale(tmp_path, kind, mode):
    grey = noise(16, 16, ()) // 2
    of_numbers = {
        "I;16": grey.astype(numpy.uint16) * 257,
        "I;16B": grey.astype(numpy.uint16) * 257,
        "I": (grey / 255 * (2**31 - 1)).astype(numpy.int32),
        "u32": (grey.astype(numpy.uint32) * (2**32 // 255)).view(numpy.int32),
        "F": (grey / 255).astype(numpy.float32),
    }
    if kind == "1":
        grey = noise(16, 16, ()) // 128 * 255
    if kind in of_numbers:
        big = of_numbers[kind].astype(">u2").tobytes() if kind == "I;16B" else None
        picture = Image.frombytes(kind, (16, 16), big) if big else Image.fromarray(of_numbers[kind])
    else:
        picture = Image.fromarray(grey).convert("RGB" if kind in ("CMYK", "YCbCr") else "L").convert(kind)
    if kind == "YCbCr" and int(PIL.__version__.split(".")[0]) < 13:
        pytest.skip("this Pillow cannot read the TIFF that it writes")
    picture.save(file := tmp_path / ("a.png" if kind in ("P", "LA", "RGBA", "I;16") else "a.tif"))
    if kind == "u32":  # Pillow writes signed ones only
        signed, unsigned = (struct.pack("<HHIHH", 339, 3, 1, sign, 0) for sign in (2, 1))
        file.write_bytes(file.read_bytes().replace(signed, unsigned))
    found = numpy.asarray(read_picture(file, mode, 16).convert("L")).astype(int)
    assert abs(found - grey).max() <= 1


@pytest.mark.parametrize("rest, wrong, message", [
    (1, 1.5, "are from 0 to 1.5: scale them"),
    (1, -0.1, "are from -0.1 to 1: scale them"),
    (1, numpy.inf, "are from 0 to inf"),
    (1, numpy.nan, "1 of 4 are NaN"),
    (numpy.nan, numpy.nan, "4 of 4 are NaN"),
])  # fmt: skip
def test_floating_numbers_outside_of_the_scale_are_refused(tmp_path, rest, wrong, message):
    """Without a warning of numpy's."""
    numbers = numpy.array([[0, 0.5], [1, 0]], dtype=numpy.float32) * rest
    numbers[1, 1] = wrong
    Image.fromarray(numbers).save(tmp_path / "a.tif")
    with pytest.raises(ValueError, match=f"floating numbers must be from 0 to 1, but {message}"):
        read_picture(tmp_path / "a.tif", "RGB", 2)


def png(width, height, data=b""):
    """A file of a few bytes that says how large it is."""

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "it is empty"),
        (b"not a picture", "it is not a whole file of PNG, JPEG, TIFF, BMP, WEBP, GIF"),
        (EPS, "it is not a whole file of PNG"),
        (
            png(50_000_000, 1),
            "at most 100,000,000 pixels once their shorter side is 16, but it is 50000000 × 1: cut it",
        ),
        (
            png(9_500, 10_600),
            "at most 100,000,000 pixels, but it is 9500 × 10600: cut it into pieces, or save it at a smaller",
        ),
        (png(60_000, 60_000), "at most 100,000,000 pixels, but it has far more: cut it"),
        (png(200, 100), "truncated|not enough|incomplete"),
        (png(0, 100), ""),
    ],
    ids=["empty", "text", "eps", "long", "large", "huge", "cut", "nothing"],
)
def test_what_is_no_picture_is_refused_in_a_line_by_either_way(tmp_path, monkeypatch, content, message):
    started = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: started.append(1))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 89_478_485)
    write_pictures(tmp_path, count=3)
    for number in range(3):
        (bad := tmp_path / "train" / "cat" / f"{number}.jpg").write_bytes(content)
    module = ImageFolderDataModule(tmp_path, size=16, batch_size=1)
    for read, lines in ((lambda: read_picture(bad, "L", 16), 1), (module.setup, 1 + 2)):
        with pytest.raises(ValueError, match=f"jpg cannot be read as a picture: .*({message})") as caught:
            read()
        assert len(str(caught.value).splitlines()) == lines
    assert str(caught.value).endswith("\n    and 2 more: train/cat/1.jpg, train/cat/2.jpg")
    assert not started


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink(path, path), lambda path: None])
def test_what_is_no_file_is_refused(tmp_path, make):
    make(tmp_path / "a.png")
    with pytest.raises(ValueError, match="a.png cannot be read as a picture"):
        read_picture(tmp_path / "a.png", "L", 8)


def test_a_file_that_is_too_large_is_not_opened(tmp_path):
    with (tmp_path / "a.webp").open("wb") as file:
        file.truncate(1_000_000_001)  # without storage
    with pytest.raises(ValueError, match="at most 1,000,000,000 bytes, but has 1,000,000,001"):
        read_picture(tmp_path / "a.webp", "L", 8)


def test_control_characters_in_names_are_shown_as_escapes(tmp_path, monkeypatch, capsys):
    network = create_model("digits_r4_sa", num_classes=2)
    known = PictureFormat("imagefolder", 1, 12, 2, (0.5,), (0.5,), ("cat\x1b[2J", "d\u202eog\n"))
    monkeypatch.setattr("gsa.cli._predict.read", lambda *_: Saved(network.eval(), {"name": "digits_r4_sa"}, known))
    file = tmp_path / "a\x1b]0;title\x07.png"
    Image.fromarray(noise(12, 12, ())).save(file)
    assert cli.main(["predict", str(file)]) == 0
    text = capsys.readouterr().out
    assert text.replace("\n", "").isprintable() and r"cat\x1b[2J" in text and r"d\u202eog\n" in text
    file.write_bytes(b"")
    assert cli.main(["predict", str(file)]) == 2
    assert capsys.readouterr().err.replace("\n", "").isprintable()


def test_printable_text_stays():
    assert printable("Zürich 日本 – 5 %") == "Zürich 日本 – 5 %" and printable("\udc80\x9b") == r"\udc80\x9b"


def tiff(numbers, bits, sample_format, photometric, data):
    """A grey TIFF file of one strip, written by hand."""
    height, width = numbers.shape
    tags = {256: width, 257: height, 258: bits, 259: 1, 262: photometric, 273: 0, 277: 1, 278: height, 279: len(data),
            339: sample_format}  # fmt: skip
    tags[273] = 8 + 2 + 12 * len(tags) + 4
    written = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + written + struct.pack("<I", 0) + data


@pytest.mark.parametrize("bits, sample_format, photometric", [
    (16, 1, 1), (16, 2, 1), (16, 1, 0), (12, 1, 1), (32, 1, 1), (32, 2, 1),
])  # fmt: skip
def test_grey_tiffs_of_any_numbers_come_out_on_the_same_scale(tmp_path, bits, sample_format, photometric):
    shades = numpy.linspace(0, 1, 64).reshape(8, 8)
    most = 2 ** (bits - (sample_format == 2)) - 1
    numbers = ((1 - shades if photometric == 0 else shades) * most).round().astype(numpy.int64)
    if bits == 12:
        pairs = numbers.flatten().reshape(-1, 2)
        data = b"".join(bytes([a >> 4, (a & 15) << 4 | b >> 8, b & 255]) for a, b in pairs.tolist())
    else:
        data = numbers.astype(f"<{'i' if sample_format == 2 else 'u'}{bits // 8}").tobytes()
    (tmp_path / "a.tif").write_bytes(tiff(numbers, bits, sample_format, photometric, data))
    found = numpy.asarray(read_picture(tmp_path / "a.tif", "L", 8))
    assert abs(found - 255 * shades).max() <= 1


@pytest.mark.parametrize("name", ["a.tif", "a.png"])
def test_what_is_white_may_be_said(tmp_path, name):
    numbers = (numpy.arange(64).reshape(8, 8) * 65).astype(numpy.uint16)
    Image.fromarray(numbers).save(tmp_path / name)
    assert brightest(tmp_path / name) == (4095, 65535)
    found = numpy.asarray(read_picture(tmp_path / name, "L", 8, white=4095))
    assert abs(found - numbers / 4095 * 255).max() <= 0.5
    known = PictureFormat("imagefolder", 1, 8, 2, (0.5,), (0.5,), ("cat", "dog"), white=4095)
    assert abs(_read(tmp_path / name, known, invert=False)[0].numpy() - found / 255).max() < 1e-6  # gsa predict
    assert (numpy.asarray(read_picture(tmp_path / name, "L", 8, white=1000))[numbers >= 1000] == 255).all()


@pytest.mark.parametrize("pixels", [noise(8, 8), noise(8, 8, ()), (noise(8, 8, ()) / 255).astype(numpy.float32)])
def test_pictures_of_8_bits_and_floating_ones_have_their_white(tmp_path, pixels):
    Image.fromarray(pixels).save(tmp_path / "a.tif")
    assert brightest(tmp_path / "a.tif") is None
    assert read_picture(tmp_path / "a.tif", "L", 8, 9).tobytes() == read_picture(tmp_path / "a.tif", "L", 8).tobytes()
