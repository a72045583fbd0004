"""How much of the numbers that a file can hold is used by a picture of more than 8 bits."""

import os
from collections.abc import Sequence
from typing import Any

import numpy
from PIL import Image

from gsa.files._tiff import is_dark_at_zero, numbers_of
from gsa.files.pictures import FORMATS

__all__ = ["brightest", "has_dark_numbers"]

_HOT = 0.001  # share of pixels that may be brighter than what is called the brightest


def brightest(path: str | os.PathLike[str], page: int = 0) -> tuple[int, int] | None:
    """Of a grey picture of more than 8 bits, what all but a thousandth of the pixels do not exceed, as hot ones do, and
    the largest whole number that it could hold; None of others. That largest one may stand for what is not known, and
    is left out where fewer than half of the pixels have it, and some another one than 0."""
    with Image.open(path, formats=FORMATS) as opened:
        opened.seek(page)
        if not opened.mode.startswith("I"):
            return None
        values, white = numbers_of(opened)
        return int(_almost_largest(_known(values, white))), int(white)


def has_dark_numbers(path: str | os.PathLike[str], pages: Sequence[int] = (0,)) -> bool:
    """Whether colours of 16 bits or floating numbers, of which 8 bits are read, use less than a quarter of their range.

    Args:
        path: of a picture.
        pages: those that are read.
    """
    with Image.open(path, formats=FORMATS) as opened:
        return any(_is_dark(opened, page) for page in pages)


def _is_dark(opened: Any, page: int) -> bool:
    opened.seek(page)
    if opened.mode == "F":
        values = numpy.asarray(opened)
        return bool(_almost_largest(_known(values if is_dark_at_zero(opened) else 1 - values, 1)) < 0.25)
    deep = len(opened.getbands()) > 1 and any(";16" in str(tile) for tile in opened.tile)
    return deep and bool(_almost_largest(numpy.asarray(opened.convert("RGB"))) < 64)


def _known(values: numpy.ndarray, white: float) -> numpy.ndarray:
    known = values[values < white]
    return known if 2 * known.size > values.size and known.any() else values


def _almost_largest(values: numpy.ndarray) -> Any:
    """What all but a thousandth do not exceed."""
    rank = values.size - 1 - int(values.size * _HOT)
    return numpy.partition(values, rank, axis=None)[rank]
