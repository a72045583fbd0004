"""TIFF files that Pillow would read wrong are refused, and those that it reads right are read."""

import struct

import numpy
import pytest
from PIL import Image

from gsa.files.pictures import count_pages, has_dark_colours, read_picture
from gsa.files.reading import PictureReader

LITTLE, BIG = "<", ">"
NUMBERS = {"B": 1, "b": 2, "H": 1, "h": 2, "I": 1, "i": 2, "f": 3}  # kind → SampleFormat


def tiff(values, kind, order=LITTLE, compressed=False, white_is_zero=False, text=None):
    """One grey page, as the specification has it, of a type that Pillow may not write."""
    import zlib

    height, width = values.shape
    data = values.astype(f"{order}{kind}").tobytes()
    data = zlib.compress(data) if compressed else data
    size = struct.calcsize(f"{order}{kind}")
    entries = [
        (256, width), (257, height), (258, 8 * size), (259, 8 if compressed else 1), (262, 0 if white_is_zero else 1),
        (273, 8), (277, 1), (278, height), (279, len(data)), (339, NUMBERS[kind]),
    ]  # fmt: skip
    directory = struct.pack(f"{order}H", len(entries))
    for tag, value in entries:
        directory += struct.pack(f"{order}HHII", tag, 4, 1, value)
    padding = b"\0" * (len(data) % 2)
    header = (b"II" if order == LITTLE else b"MM") + struct.pack(f"{order}HI", 42, 8 + len(data) + len(padding))
    return header + data + padding + directory + b"\0\0\0\0"


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("order", [LITTLE, BIG])
@pytest.mark.parametrize("kind", NUMBERS)
def test_what_is_read_is_right(tmp_path, kind, order, compressed):
    """Or it is refused; planted: kinds that Pillow turns round, or takes for others, which it would return."""
    whole = numpy.arange(64).reshape(8, 8)
    most = {"B": 255, "b": 127, "H": 65535, "h": 32767, "I": 2**32 - 1, "i": 2**31 - 1, "f": 1.0}[kind]
    values = whole / 63 if kind == "f" else (whole * (most // 63)).clip(0, most)
    (tmp_path / "a.tif").write_bytes(tiff(values, kind, order, compressed))
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
    from tests.files.test_pictures import of_colours

    for largest, is_dark in ((4095, True), (60000, False)):
        numbers = numpy.full((8, 8, 3), largest, "<u2")
        (tmp_path / "a.tif").write_bytes(of_colours(numbers, planes=1, sample_format=1))
        assert has_dark_colours(tmp_path / "a.tif") is is_dark
    Image.new("RGB", (8, 8), (9, 9, 9)).save(tmp_path / "a.png")
    assert not has_dark_colours(tmp_path / "a.png")
