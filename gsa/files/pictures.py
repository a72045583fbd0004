"""Files of pictures, whatever is in them: a picture comes out, or one error that names the file."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy
from PIL import Image, ImageOps, UnidentifiedImageError

from gsa.files._text import printable
from gsa.files._tiff import AS_PAGES, check_pages, check_tiff, in_words, is_dark_at_zero, numbers_of

__all__ = [
    "BENEATH",
    "FORMATS",
    "MOST_BYTES",
    "MOST_PAGES",
    "MOST_PIXELS",
    "count_pages",
    "has_pages",
    "has_transparency",
    "is_long",
    "is_square_of",
    "read_pages",
    "read_picture",
]

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF")  # no other reader is started, whatever a file is called
MOST_PIXELS = 100_000_000  # of a picture, and of the same picture scaled
MOST_BYTES = 1_000_000_000  # of a file
MOST_PAGES = 1000  # that are channels
BENEATH = "of which the colour beneath is read, most often black: lay them on white first, if that is meant"
_SMALLER = "cut it into pieces, or save it at a smaller scale"
_ROWS = 256
_GREY = "#808080"  # beside what is not square
_LONG = 2  # sides
_NOT_READ = f"it is not a whole file of {', '.join(FORMATS)}"
_READ = (
    "expected one number at every pixel, of up to 32 bits; grey of 8 bits and opacity; colours of 8 or 16 bits, perhaps"
    f" with opacity; or one floating number, of 32 bits. Of others, {AS_PAGES}"
)


def has_pages(path: str | os.PathLike[str]) -> bool:
    """Whether a picture is a TIFF of several pages, such as a stack, of which `read_picture` reads the first."""
    try:
        with Image.open(path, formats=("TIFF",)) as opened:
            return opened.is_animated  # type: ignore[attr-defined]
    except UnidentifiedImageError:
        return False


def count_pages(path: str | os.PathLike[str]) -> int:
    """Pages of a TIFF; 1 of other pictures.

    Raises:
        ValueError: as of `read_picture`; more than 1000.
    """
    with _opened(path) as opened:
        return _pages(opened)


def is_square_of(path: str | os.PathLike[str], side: int) -> bool:
    """Whether a picture has that side, so that `read_picture` leaves its pixels as they are."""
    with Image.open(path, formats=FORMATS) as opened:
        return opened.size == (side, side)


def is_long(path: str | os.PathLike[str]) -> bool:
    """Whether one side of a picture is at least twice the other, so that half of it lies outside the central square."""
    with Image.open(path, formats=FORMATS) as opened:
        return max(opened.size) >= _LONG * min(opened.size)


def has_transparency(path: str | os.PathLike[str] | BinaryIO) -> bool:
    """Whether pixels of a picture are not opaque: `read_picture` reads the colour beneath, most often black."""
    with Image.open(path, formats=FORMATS) as opened, suppress(ValueError):  # of modes that Pillow does not convert
        return bool(opened.has_transparency_data and numpy.asarray(opened.convert("RGBA"))[..., 3].min() < 255)
    return False


def read_picture(
    path: str | os.PathLike[str] | BinaryIO, mode: str, size: int, white: float | None = None, whole: bool = False
) -> Image.Image:
    """The centre of a picture: the shorter side is scaled to `size`, the rest cut off. Or the whole of it.

    The first of several frames or pages; upright, where a camera has noted how it was held (EXIF), as viewers show it.

    Args:
        path: a PNG, JPEG, TIFF, BMP, WebP or GIF file, or one that is open or in memory.
        mode: of the picture that comes out, "L" or "RGB". Whole numbers of 16 or 32 bits come out on the scale of 8,
            white as white; floating ones are taken as they are, from 0 to 1. Transparency is left out, whatever
            colours lie beneath.
        size: its side in pixels.
        white: the whole number of more than 8 bits that is white, as are larger ones; the largest that the file could
            hold when None.
        whole: whether the longer side is scaled to `size`, and what is lacking is grey on both sides, alike.

    Raises:
        ValueError: anything else, floating numbers outside [0, 1], or a picture that is too large, which is looked at
            before anything is decoded.
    """
    with _opened(path) as opened:
        return _framed(opened, mode, size, white, whole)


def read_pages(
    path: str | os.PathLike[str], size: int, white: Sequence[float | None], whole: bool = False
) -> list[Image.Image]:
    """All pages of a TIFF, each as `read_picture` reads a grey picture: of what has no pages, the one that it is.

    Args:
        path: of the file.
        size: side of the pictures in pixels.
        white: of every page, as of `read_picture`.
        whole: as of `read_picture`.

    Raises:
        ValueError: as of `read_picture`; a page in colour or of another size, another number of pages than `white` has.
    """
    with _opened(path) as opened:
        if (pages := _pages(opened)) != len(white):
            of = f"{len(white)} page{'s' if len(white) > 1 else ''}"
            raise ValueError(f"it must have {of}, a channel each, but has {pages}")
        found, size_of_first = [], opened.size
        for page, lightest in enumerate(white):
            opened.seek(page)
            if opened.size != size_of_first:
                raise ValueError(f"pages must be of one size, but are of {size_of_first} and {opened.size}")
            if opened.mode not in ("1", "L", "F") and not opened.mode.startswith("I"):
                raise ValueError(
                    f"pages must be grey, a channel each, but page {page + 1} is {opened.mode}: save them apart"
                )
            found.append(_framed(opened, "L", size, lightest, whole))
        return found


@contextmanager
def _opened(path: str | os.PathLike[str] | BinaryIO) -> Iterator[Image.Image]:
    """A picture that is looked at, but not decoded yet; whatever goes wrong is one error that names the file."""
    name = str(path) if isinstance(path, str | os.PathLike) else "the file"
    try:
        if isinstance(path, str | os.PathLike):
            _check_file(Path(path))
        logging.getLogger("PIL.TiffImagePlugin").addFilter(_is_news)
        with Image.open(path, formats=FORMATS) as opened:  # a limit of its own warns at 89 million pixels
            yield opened
    except Exception as error:  # what decoders make of damaged bytes has no common name
        reason = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, Image.DecompressionBombError):  # Pillow's own limit, far above ours
            reason = f"pictures must have at most {MOST_PIXELS:,} pixels, but it has far more: {_SMALLER}"
        elif isinstance(error, UnidentifiedImageError):
            words = in_words(path) if isinstance(path, str | os.PathLike) else None
            reason = (
                _NOT_READ if words is None else f"{_NOT_READ}, or a TIFF of a kind that is not read, {words}: {_READ}"
            )
        raise ValueError(printable(f"{name} cannot be read as a picture: {reason}")) from error


def _is_news(record: logging.LogRecord) -> bool:
    """Of what Pillow logs: for each file that has more channels than it reads, an error, which is raised as well."""
    return not record.getMessage().startswith("More samples per pixel")


def _pages(opened: Image.Image) -> int:
    pages = opened.n_frames if opened.format == "TIFF" else 1  # type: ignore[attr-defined]
    check_pages(opened, pages)
    if pages > MOST_PAGES:
        raise ValueError(f"a file must have at most {MOST_PAGES} pages, but has {pages}")
    return pages


def _framed(opened: Image.Image, mode: str, size: int, white: float | None, whole: bool) -> Image.Image:
    _check_pixels(*opened.size, 0 if whole else size)
    check_tiff(opened)
    return (_whole if whole else _centre)(_upright(_eight_bits(opened, white).convert(mode), opened), size)


def _check_file(path: Path) -> None:
    if not path.exists():
        raise ValueError("there is no such file")
    if not path.is_file():  # reading a pipe would wait for ever
        raise ValueError("it is not a regular file")
    if not path.stat().st_size:
        raise ValueError("it is empty")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"a file must have at most {MOST_BYTES:,} bytes, but has {path.stat().st_size:,}: {_SMALLER}")


def _check_pixels(width: int, height: int, size: int) -> None:
    short, long = sorted((width, height))
    if short < 1:
        raise ValueError(f"it is {width} × {height} pixels")
    if width * height > MOST_PIXELS:
        raise ValueError(f"pictures must have at most {MOST_PIXELS:,} pixels, but it is {width} × {height}: {_SMALLER}")
    if size * size * long > MOST_PIXELS * short:
        raise ValueError(
            f"pictures must have at most {MOST_PIXELS:,} pixels once their shorter side is {size}, "
            f"but it is {width} × {height}: {_SMALLER}"
        )


def _eight_bits(picture: Image.Image, white: float | None) -> Image.Image:
    """Grey pictures of more bits than 8, which Pillow would clip, on the scale of 8; others as they are."""
    if picture.mode == "F":
        values, white = numpy.asarray(picture), 1.0
        _check_floating(values)
        values = values if is_dark_at_zero(picture) else 1 - values
    elif picture.mode.startswith("I"):
        values, most = numbers_of(picture)
        white = white or most
    else:
        return picture
    scaled = numpy.empty(values.shape, numpy.uint8)
    for top in range(0, len(values), _ROWS):  # at a time, because as floating numbers they take eight times as much
        rows = slice(top, top + _ROWS)
        scaled[rows] = ((values[rows] / white).clip(0, 1) * 255).round()
    return Image.fromarray(scaled)


def _check_floating(values: numpy.ndarray) -> None:
    known = values[~numpy.isnan(values)]
    if known.size < values.size:
        raise ValueError(
            f"floating numbers must be from 0 to 1, but {values.size - known.size} of {values.size} are NaN"
        )
    if known.min() < 0 or known.max() > 1:
        raise ValueError(
            f"floating numbers must be from 0 to 1, but are from {known.min():.6g} to {known.max():.6g}: scale them"
        )


def _upright(picture: Image.Image, opened: Image.Image) -> Image.Image:
    """Turned as the file says, of a TIFF by Pillow itself; as it is where what it says cannot be read."""
    picture.info = dict(opened.info)
    with suppress(Exception):  # notes of cameras are damaged more often than pictures
        return ImageOps.exif_transpose(picture)
    return picture


def _centre(picture: Image.Image, size: int) -> Image.Image:
    """What torchvision's resize and center_crop make of it."""
    short, long = sorted(picture.size)
    if short != size:
        scaled = int(size * long / short)
        width, height = (size if side == short else scaled for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (round((side - size) / 2) for side in picture.size)
    return picture.crop((left, top, left + size, top + size))


def _whole(picture: Image.Image, size: int) -> Image.Image:
    """All of a picture on grey, in the very middle, so that turning the file turns what comes out."""
    long = max(picture.size)
    width, height = (max(size - 2 * round(size * (1 - side / long) / 2), 2 - size % 2) for side in picture.size)
    ground = Image.new(picture.mode, (size, size), _GREY)
    scaled = picture.resize((width, height), Image.Resampling.BILINEAR)
    ground.paste(scaled, ((size - width) // 2, (size - height) // 2))
    return ground
