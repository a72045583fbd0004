"""Kinds of TIFF files that Pillow would read wrong: they are refused."""

import os
import re
from contextlib import suppress
from typing import Any

import numpy
from PIL import Image, TiffImagePlugin

__all__ = ["AS_PAGES", "check_pages", "check_tiff", "in_words", "is_dark_at_zero", "numbers_of", "tags_of"]

# Tags: bits of a number; how it is compressed; 0 where white is zero; what is written of the picture; how many numbers
# a pixel has; 2 where colours lie apart; (2,) where numbers are signed.
_BITS, _COMPRESSION, _PHOTOMETRIC, _DESCRIPTION, _SAMPLES, _PLANES, _SAMPLE_FORMAT = 258, 259, 262, 270, 277, 284, 339
_BIG = (b"II\x2b\0", b"MM\0\x2b")  # files with a longer header
AS_PAGES = "save its channels as pages (docs/pictures.md#channels-saved-as-pages)"


def tags_of(picture: Image.Image) -> Any:
    """Number → value; empty of other files."""
    return getattr(picture, "tag_v2", {})


def is_dark_at_zero(picture: Image.Image) -> bool:
    """Whether larger numbers are lighter, as in nearly all files."""
    return tags_of(picture).get(_PHOTOMETRIC) != 0


def _largest_number(picture: Image.Image) -> float:
    """The largest whole number that a grey picture of more than 8 bits could hold: 16 bits in all but TIFF files."""
    tags = tags_of(picture)
    bits, signed = tags.get(_BITS, (16,))[0], 2 in tags.get(_SAMPLE_FORMAT, ())
    return 2.0 ** (bits - signed) - 1


def in_words(path: str | os.PathLike[str]) -> str | None:
    """What a TIFF says of its pixels, if it cannot be opened as a picture: "13 numbers of 16 bits"; None of others."""
    with suppress(Exception), open(path, "rb") as file:  # whatever is in it
        header = file.read(8)
        tags = TiffImagePlugin.ImageFileDirectory_v2(header + file.read(8) if header[:4] in _BIG else header)
        file.seek(tags.next)
        tags.load(file)
        count, bits = tags.get(_SAMPLES, 1), max(tags[_BITS])
        apart = ", which lie apart (planar)" if tags.get(_PLANES) == 2 else ""
        grey = ", as grey, not as colours," if count in (3, 4) and tags.get(_PHOTOMETRIC) in (0, 1) else ""
        return f"{count} number{'s' if count > 1 else ''} of {bits} bits{grey} at every pixel{apart}"
    return None


def numbers_of(picture: Image.Image) -> tuple[numpy.ndarray, float]:
    """Whole numbers of more bits than 8, the larger the lighter, and the largest that they could be."""
    values, white = numpy.asarray(picture), _largest_number(picture)
    if white == 2.0**32 - 1:
        values = values.view(numpy.uint32)  # Pillow knows no unsigned ones
    return (values if is_dark_at_zero(picture) else white - values), white


def check_tiff(picture: Image.Image) -> None:
    """Refuse what Pillow takes for something else.

    Raises:
        ValueError: more channels than it would read; colours of more than 8 bits that lie apart; signed numbers of 8
            bits; compressed big-endian numbers that are signed, floating, or of 32 bits.
    """
    tags, bands = tags_of(picture), len(picture.getbands())
    bits, signed = max(tags.get(_BITS, (1,))), 2 in tags.get(_SAMPLE_FORMAT, ())
    if (samples := tags.get(_SAMPLES, 1)) > bands:
        raise ValueError(
            f"it has {samples} numbers at every pixel, of which {bands} would be read: {AS_PAGES}, or save it without "
            "those that are not meant"
        )
    if tags.get(_PLANES) == 2 and bits > 8 and bands > 1:
        raise ValueError(
            f"colours that lie apart (planar) must have at most 8 bits a number, but have {bits}: save them interleaved"
        )
    if bits == 8 and signed:
        raise ValueError("numbers of 8 bits must be without a sign, but have one: add 128 to them")
    if picture.mode in ("I", "F") and tags.get(_COMPRESSION, 1) != 1 and tags.prefix == b"MM":
        raise ValueError(
            "compressed numbers that are signed, floating, or of 32 bits must be little-endian, but are big-endian: "
            "save them uncompressed"
        )


def check_pages(picture: Image.Image, pages: int) -> None:
    """Refuse a stack in which most pages have no entry of their own, as ImageJ and tifffile may write it.

    Raises:
        ValueError: with how many there are.
    """
    text = str(tags_of(picture).get(_DESCRIPTION, ""))
    said = re.search(r"^images=([0-9]{1,9})\s*$", text, re.M) if text.startswith("ImageJ=") else None
    if (said is not None and int(said[1]) != pages) or '"truncated": true' in text:
        count = f" {said[1]}" if said else ""
        raise ValueError(f"all of its{count} pages must have an entry of their own, but {pages} have: save them anew")
