"""Files of pictures, whatever is in them: a picture comes out, or one error that names the file."""

import os
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from gsa.files._text import printable

__all__ = ["FORMATS", "MOST_BYTES", "MOST_PIXELS", "read_picture"]

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF")  # no other reader is started, whatever a file is called
MOST_PIXELS = 100_000_000  # of a picture, and of the same picture scaled
MOST_BYTES = 1_000_000_000  # of a file


def read_picture(path: str | os.PathLike, mode: str, size: int) -> Image.Image:
    """The centre of a picture, of an animation the first frame: the shorter side is scaled to `size`, the rest cut off.

    Args:
        path: a PNG, JPEG, TIFF, BMP, WebP or GIF file.
        mode: of the picture that comes out, "L" or "RGB".
        size: its side in pixels.

    Raises:
        ValueError: anything else, or a picture that is too large; looked at before anything is decoded.
    """
    try:
        _check_file(Path(path))
        with Image.open(path, formats=FORMATS) as opened:  # a limit of its own warns at 89 million pixels
            _check_pixels(*opened.size, size)
            return _centre(opened.convert(mode), size)
    except Exception as error:  # what decoders make of damaged bytes has no common name
        reason = f"it is not a whole file of {', '.join(FORMATS)}"
        if not isinstance(error, UnidentifiedImageError):
            reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(printable(f"{path} cannot be read as a picture: {reason}")) from error


def _check_file(path: Path) -> None:
    if path.exists() and not path.is_file():  # reading a pipe would wait for ever
        raise ValueError("it is not a regular file")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"a file must have at most {MOST_BYTES:,} bytes, but has {path.stat().st_size:,}")


def _check_pixels(width: int, height: int, size: int) -> None:
    short, long = sorted((width, height))
    if short < 1:
        raise ValueError(f"it is {width} × {height} pixels")
    if width * height > MOST_PIXELS:
        raise ValueError(f"pictures must have at most {MOST_PIXELS:,} pixels, but it is {width} × {height}")
    if size * size * long > MOST_PIXELS * short:
        raise ValueError(
            f"pictures must have at most {MOST_PIXELS:,} pixels once their shorter side is {size}, "
            f"but it is {width} × {height}"
        )


def _centre(picture: Image.Image, size: int) -> Image.Image:
    """What torchvision's resize and center_crop make of it."""
    short, long = sorted(picture.size)
    if short != size:
        scaled = int(size * long / short)
        width, height = (size if side == short else scaled for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (round((side - size) / 2) for side in picture.size)
    return picture.crop((left, top, left + size, top + size))
