"""TIFF files that Pillow would read wrong are refused, and those that it reads right are read."""

import struct
import zlib

import numpy
import pytest
from PIL import Image

from gsa.files.brightness import brightest, has_dark_numbers
from gsa.files.pictures import count_pages, has_pages, read_picture
from gsa.files.reading import PictureReader
from tests.files.test_pictures import noise

LITTLE, BIG = "<", ">"
NUMBERS = {"B": 1, "b": 2, "H": 1, "h": 2, "I": 1, "i": 2, "f": 3}  # kind → SampleFormat


def tiff(values, kind, order=LITTLE, planes=1, sample_format=None, compressed=False, white_is_zero=False, others=()):
    """Numbers [H, W] or [H, W, C], of types that Pillow may not write: plane by plane, or pixel by pixel."""
    values = values.astype(f"{order}{kind}")
    values = values if values.ndim == 3 else values[..., None]
    height, width, channels = values.shape
    parts = [part.tobytes() for part in (values.transpose(2, 0, 1) if planes == 2 else [values])]
    parts = [zlib.compress(part) for part in parts] if compressed else parts
    tags = {
        256: [width], 257: [height], 258: [8 * values.itemsize] * channels, 259: [8 if compressed else 1],
        262: [2 if channels == 3 else 0 if white_is_zero else 1], 273: [0] * len(parts), 277: [channels], 278: [height],
        279: [len(part) for part in parts], 284: [planes], 339: [sample_format or NUMBERS[kind]] * channels,
    } | dict(others)  # fmt: skip
    beside = 8 + 2 + 12 * len(tags) + 4
    data = beside + sum(4 * len(numbers) for numbers in tags.values())
    tags[273] = [data + sum(map(len, parts[:number])) for number in range(len(parts))]
    entries, more = b"", b""
    for tag, numbers in sorted(tags.items()):
        packed = struct.pack(f"{order}{len(numbers)}I", *numbers)
        entries += struct.pack(f"{order}HHI", tag, 4, len(numbers))
        entries += packed if len(numbers) == 1 else struct.pack(f"{order}I", beside + len(more))
        more += b"" if len(numbers) == 1 else packed
    header = (b"II" if order == LITTLE else b"MM") + struct.pack(f"{order}HIH", 42, 8, len(tags))
    return header + entries + bytes(4) + more.ljust(data - beside) + b"".join(parts)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("order", [LITTLE, BIG])
@pytest.mark.parametrize("kind", NUMBERS)
def test_what_is_read_is_right(tmp_path, kind, order, compressed):
    """Or it is refused; planted: kinds that Pillow turns round, or takes for others, which it would return."""
    whole = numpy.arange(64).reshape(8, 8)
    most = {"B": 255, "b": 127, "H": 65535, "h": 32767, "I": 2**32 - 1, "i": 2**31 - 1, "f": 1.0}[kind]
    values = whole / 63 if kind == "f" else (whole * (most // 63)).clip(0, most)
    (tmp_path / "a.tif").write_bytes(tiff(values, kind, order, compressed=compressed))
    expected = numpy.round(255 * (values / most))
    try:
        found = numpy.asarray(read_picture(tmp_path / "a.tif", "L", 8))
    except ValueError as error:
        turned = order == BIG and compressed and kind in "hiIf"
        assert turned or kind == "b" or (kind == "I" and order == BIG), error
    else:
        assert abs(found - expected).max() <= 1, kind


@pytest.mark.parametrize("kind", ["B", "H", "f"])
def test_white_may_be_zero(tmp_path, kind):
    most = {"B": 255, "H": 65535, "f": 1.0}[kind]
    values = numpy.linspace(0, most, 64).reshape(8, 8)
    (tmp_path / "a.tif").write_bytes(tiff(values, kind, white_is_zero=True))
    found = numpy.asarray(read_picture(tmp_path / "a.tif", "L", 8))
    assert abs(found - 255 * (1 - values / most)).max() <= 1


@pytest.mark.parametrize("text, count", [
    ("ImageJ=1.11a\nimages=4\nchannels=4\n", " 4"), ('{"shape": [4, 8, 8], "truncated": true}', ""),
])  # fmt: skip
def test_a_stack_whose_pages_have_no_entries_is_refused(tmp_path, text, count):
    """Planted: one that has them all."""
    pages = [Image.new("L", (8, 8))] * 4
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:], description="ImageJ=1.11a\nimages=4\n")
    assert count_pages(tmp_path / "a.tif") == 4
    pages[0].save(tmp_path / "a.tif", description=text)
    with pytest.raises(ValueError, match=f"all of its{count} pages must have an entry of their own, but 1 have"):
        count_pages(tmp_path / "a.tif")


def test_pages_of_other_sizes_such_as_those_of_a_pyramid_are_refused(tmp_path):
    pages = [Image.new("L", (side, side)) for side in (32, 16, 8)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(ValueError, match=r"pages must be of one size, but are of \(32, 32\) and \(16, 16\)"):
        PictureReader(8, 3, pages=True)(tmp_path / "a.tif")


def test_colours_of_16_bits_that_come_out_dark_are_found(tmp_path):
    """Planted: light ones, and dark ones of 8 bits, which may be night."""
    for largest, is_dark in ((4095, True), (60000, False)):
        (tmp_path / "a.tif").write_bytes(tiff(numpy.full((8, 8, 3), largest), "H"))
        assert has_dark_numbers(tmp_path / "a.tif") is is_dark
    Image.new("RGB", (8, 8), (9, 9, 9)).save(tmp_path / "a.png")
    assert not has_dark_numbers(tmp_path / "a.png")


@pytest.mark.parametrize("planes, kind", [(1, "B"), (2, "B"), (1, "H")])
def test_colours_that_lie_together_or_apart_are_read(tmp_path, planes, kind):
    pixels = noise(8, 8)
    numbers = pixels.astype(int) * (1 if kind == "B" else 257)
    (tmp_path / "a.tif").write_bytes(tiff(numbers, kind, planes=planes))
    assert (numpy.asarray(read_picture(tmp_path / "a.tif", "RGB", 8)) == pixels).all()


def test_colours_of_16_bits_that_lie_apart_are_refused(tmp_path):
    """Planted: a grey picture, of which the same is said, and whose only plane is read right."""
    (tmp_path / "a.tif").write_bytes(tiff(noise(8, 8).astype(int) * 257, "H", planes=2))
    with pytest.raises(
        ValueError, match=r"\(planar\) must have at most 8 bits a number, but have 16: save them interl"
    ):
        read_picture(tmp_path / "a.tif", "RGB", 8)
    grey = noise(8, 8, ())
    Image.fromarray(grey.astype("<u2") * 257).save(tmp_path / "a.tif", tiffinfo={284: 2}, compression="tiff_lzw")
    assert (numpy.asarray(read_picture(tmp_path / "a.tif", "L", 8)) == grey).all()


@pytest.mark.parametrize("channels, kind, sample_format, words", [
    (2, "H", 1, "2 numbers of 16 bits at every pixel:"), (3, "f", 3, "3 numbers of 32 bits at every pixel:"),
    (1, "d", 3, "1 number of 64 bits at every pixel:"), (13, "H", 1, "13 numbers of 16 bits at every pixel:"),
    (4, "H", 1, "4 numbers of 16 bits, as grey, not as colours, at every pixel:"),
])  # fmt: skip
def test_a_tiff_of_a_kind_that_is_not_read_is_not_only_called_damaged(
    tmp_path, caplog, channels, kind, sample_format, words
):
    numbers = numpy.zeros((8, 8, channels))
    (tmp_path / "a.tif").write_bytes(tiff(numbers, kind, sample_format=sample_format))
    with pytest.raises(ValueError, match=f"or a TIFF of a kind that is not read, {words} expected .* save its cha"):
        read_picture(tmp_path / "a.tif", "RGB", 8)
    assert not caplog.records


@pytest.mark.parametrize("channels, kind, planes, compressed", [
    (2, "H", 2, True), (13, "H", 2, True), (13, "H", 2, False), (5, "h", 2, True), (3, "f", 2, True),
    (13, "B", 2, True), (2, "B", 1, False), (5, "f", 2, True),
])  # fmt: skip
def test_no_channel_is_lost(tmp_path, channels, kind, planes, compressed):
    """As satellite pictures have them, of which Pillow reads the first one as a grey picture."""
    numbers = numpy.random.default_rng(0).integers(0, 100, (8, 8, channels)) / (100 if kind == "f" else 1)
    path = tmp_path / "a.tif"
    path.write_bytes(tiff(numbers, kind, planes=planes, compressed=compressed))
    with pytest.raises(ValueError, match=f"{channels} numbers|kind that is not read"):
        read_picture(path, "RGB", 8)
    with pytest.raises(ValueError, match=f"{channels} numbers|kind that is not read"):
        PictureReader(8, 1, pages=True)(path)


def test_a_fourth_number_that_is_no_opacity_is_not_lost(tmp_path):
    """Near infrared beside colours; planted: opacity, which is told of elsewhere."""
    pixels = noise(8, 8, (4,))
    Image.fromarray(pixels).save(tmp_path / "rgba.tif")
    assert read_picture(tmp_path / "rgba.tif", "RGB", 8).size == (8, 8)
    (tmp_path / "nir.tif").write_bytes(tiff(pixels, "B", others={262: [2], 338: [0]}))
    with pytest.raises(
        ValueError, match="it has 4 numbers at every pixel, of which 3 would be read: save its channels"
    ):
        read_picture(tmp_path / "nir.tif", "RGB", 8)


def test_what_is_not_known_is_not_the_brightest(tmp_path):
    """A border of 65535; planted: black and white, a file all white, and one that is white for the most part."""
    values = numpy.full((20, 20), 3000)
    for border, expected in ((0, 3000), (5, 3000)):
        values[:border] = 65535
        (tmp_path / "a.tif").write_bytes(tiff(values, "H"))
        assert brightest(tmp_path / "a.tif") == (expected, 65535)
    bright_field = numpy.where(numpy.arange(400).reshape(20, 20) < 40, 9000, 65535)
    for values in (numpy.where(numpy.eye(20), 65535, 0), numpy.full((20, 20), 65535), bright_field):
        (tmp_path / "a.tif").write_bytes(tiff(values, "H"))
        assert brightest(tmp_path / "a.tif") == (65535, 65535)


@pytest.mark.parametrize("largest, is_dark", [(0.1, True), (1.0, False)])
def test_floating_numbers_that_come_out_dark_are_found(tmp_path, largest, is_dark):
    """In spite of one hot pixel; and of a page."""
    values = numpy.linspace(0, largest, 2500).reshape(50, 50)
    values[0, 0] = 1
    (tmp_path / "a.tif").write_bytes(tiff(values, "f"))
    assert has_dark_numbers(tmp_path / "a.tif") is is_dark
    values[:10] = 1  # not known
    (tmp_path / "a.tif").write_bytes(tiff(1 - values, "f", white_is_zero=True))
    assert has_dark_numbers(tmp_path / "a.tif") is is_dark
    light = Image.fromarray(numpy.ones((50, 50), "float32"))
    light.save(tmp_path / "b.tif", save_all=True, append_images=[Image.fromarray(values.astype("float32"))])
    assert not has_dark_numbers(tmp_path / "b.tif")
    assert PictureReader(8, 2).has_dark_numbers(tmp_path / "b.tif") is is_dark


@pytest.mark.parametrize("kind, frames, pages", [("TIFF", 3, True), ("TIFF", 1, False), ("GIF", 3, False)])
def test_stacks_have_pages(tmp_path, kind, frames, pages):
    first, *others = (Image.fromarray(noise(8, 8, (), seed)) for seed in range(frames))
    first.save(tmp_path / "a", kind, save_all=True, append_images=others)
    assert has_pages(tmp_path / "a") == pages and count_pages(tmp_path / "a") == (frames if pages else 1)
