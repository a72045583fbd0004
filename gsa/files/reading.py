"""How a file becomes a picture of so many channels."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from gsa.files.brightness import brightest, has_dark_numbers
from gsa.files.pictures import read_pages, read_picture

__all__ = ["PictureReader"]


@dataclass(frozen=True)
class PictureReader:
    """Reads files as squares of so many channels: path → uint8 [channels, size, size].

    Args:
        size: side in pixels, as of `read_picture`.
        channels: 1, grey; 3, colours; any other number of pages of a TIFF, of which each is a grey channel.
        white: as of `read_picture`; of pages one for all, or one for each.
        pages: whether one or three channels are pages, too.
        whole: as of `read_picture`.

    Raises:
        ValueError: several whites for what has no pages, or not one for each page; where it reads, as `read_picture`
            and `read_pages`.
    """

    size: int
    channels: int = 3
    white: int | Sequence[int] | None = None
    pages: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.white, Sequence):
            return
        if not self.reads_pages:
            raise ValueError(f"white must be one number where channels are not pages, but got {list(self.white)}")
        if len(self.white) != self.channels:
            raise ValueError(
                f"white must be one number, or one for each of {self.channels} pages, but got {list(self.white)}"
            )

    @property
    def reads_pages(self) -> bool:
        """Whether the channels of a picture are the pages of its file."""
        return self.pages or self.channels not in (1, 3)

    def __call__(self, path: str | os.PathLike[str]) -> numpy.ndarray:
        if self.reads_pages:
            return numpy.stack(
                [numpy.asarray(page) for page in read_pages(path, self.size, self._whites(), self.whole)]
            )
        if self.channels == 1:
            return numpy.array(read_picture(path, "L", self.size, self._whites()[0], self.whole))[None]
        picture = read_picture(path, "RGB", self.size, self._whites()[0], self.whole)
        return numpy.ascontiguousarray(numpy.asarray(picture).transpose(2, 0, 1))

    def brightest(self, path: str | os.PathLike[str]) -> list[tuple[int, int] | None]:
        """The largest whole number of every page that is read, and the largest it could hold: see `brightest`."""
        return [brightest(path, page) for page in range(len(self._whites()))]

    def has_dark_numbers(self, path: str | os.PathLike[str]) -> bool:
        """Whether numbers for which `white` does not count come out dark: see `has_dark_numbers`."""
        return has_dark_numbers(path, range(len(self._whites())))

    def is_over_white(self, path: str | os.PathLike[str]) -> bool:
        """Whether numbers of a page that is read are larger than what is white in it, beside a few hot pixels."""
        pairs = zip(self.brightest(path), self._whites(), strict=True)
        return any(pair is not None and white is not None and pair[0] > white for pair, white in pairs)

    def _whites(self) -> list[int | None]:
        """Of every page that is read."""
        if isinstance(self.white, Sequence):
            return list(self.white)
        return [self.white] * (self.channels if self.reads_pages else 1)
