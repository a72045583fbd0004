"""Kinds of TIFF files that Pillow would read wrong: they are refused."""

import re
from typing import Any

from PIL import Image

__all__ = ["check_pages", "check_tiff", "is_dark_at_zero", "largest_number", "tags_of"]

# Tags: bits of a number; how it is compressed; 0 where white is zero; what is written of the picture; 2 where colours
# lie apart; (2,) where numbers are signed.
_BITS, _COMPRESSION, _PHOTOMETRIC, _DESCRIPTION, _PLANES, _SAMPLE_FORMAT = 258, 259, 262, 270, 284, 339


def tags_of(picture: Image.Image) -> Any:
    """Number → value; empty of other files."""
    return getattr(picture, "tag_v2", {})


def is_dark_at_zero(picture: Image.Image) -> bool:
    """Whether larger numbers are lighter, as in nearly all files."""
    return tags_of(picture).get(_PHOTOMETRIC) != 0


def largest_number(picture: Image.Image) -> float:
    """The largest whole number that a grey picture of more than 8 bits could hold: 16 bits in all but TIFF files."""
    tags = tags_of(picture)
    bits, signed = tags.get(_BITS, (16,))[0], 2 in tags.get(_SAMPLE_FORMAT, ())
    return 2.0 ** (bits - signed) - 1


def check_tiff(picture: Image.Image) -> None:
    """Refuse what Pillow takes for something else; of grey pictures there is but one plane, which it reads right.

    Raises:
        ValueError: colours of more than 8 bits that lie apart; signed numbers of 8 bits; compressed big-endian numbers
            that are signed, floating, or of 32 bits.
    """
    tags = tags_of(picture)
    bits, signed = max(tags.get(_BITS, (1,))), 2 in tags.get(_SAMPLE_FORMAT, ())
    if tags.get(_PLANES) == 2 and bits > 8 and len(picture.getbands()) > 1:
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
