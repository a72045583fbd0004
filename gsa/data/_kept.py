"""Pictures that are decoded once, and stay in memory."""

import os

import numpy

from gsa.files.reading import PictureReader

__all__ = ["KeptPictures"]


class KeptPictures:
    """Reads files as `read` does, each once as long as there is room: path → uint8 [C, size, size].

    A copy, such as workers that are no forks get, begins with none and keeps none, as each would have its own.

    Args:
        read: what reads a file.
        room: bytes of pictures that are kept at most.
    """

    def __init__(self, read: PictureReader, room: float) -> None:
        self.read, self.room = read, room
        self._kept: dict[str, numpy.ndarray] = {}

    def __call__(self, path: str | os.PathLike[str]) -> numpy.ndarray:
        name = os.fspath(path)
        if (kept := self._kept.get(name)) is not None:
            return kept
        picture = self.read(path)
        if (len(self._kept) + 1) * picture.nbytes <= self.room:  # all are of one size
            self._kept[name] = picture
        return picture

    def __reduce__(self) -> tuple:
        return type(self), (self.read, 0)
