"""Pictures that are decoded once, and stay in memory."""

import os
from typing import NamedTuple
from weakref import WeakSet

import numpy

from gsa.files.reading import PictureReader

__all__ = ["KeptPictures"]


class _Kept(NamedTuple):
    state: tuple[int, ...]  # of the file, when it was read
    picture: numpy.ndarray


class KeptPictures:
    """Reads files as `read` does, each once as long as there is room: path → uint8 [C, size, size].

    What another one in this process has kept, read alike from a file that has not changed, is shared with it. A copy,
    such as workers that are no forks get, begins with none and keeps none.

    Args:
        read: what reads a file.
        room: bytes of pictures that are kept at most.
    """

    def __init__(self, read: PictureReader, room: float) -> None:
        self.read, self.room = read, room
        self._kept: dict[str, _Kept] = {}
        _ALIVE.add(self)

    def __call__(self, path: str | os.PathLike[str]) -> numpy.ndarray:
        name = os.fspath(path)
        if name in self._kept:
            return self._kept[name].picture
        kept = self._read_once(name)
        if (len(self._kept) + 1) * kept.picture.nbytes <= self.room:  # all are of one size
            self._kept[name] = kept
        return kept.picture

    def __reduce__(self) -> tuple:
        return type(self), (self.read, 0)

    def _read_once(self, name: str) -> _Kept:
        try:
            status = os.stat(name)
        except OSError:
            return _Kept((), self.read(name))  # which says what is the matter
        state = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        for other in list(_ALIVE):
            if other.read == self.read and name in other._kept and other._kept[name].state == state:
                return other._kept[name]
        return _Kept(state, self.read(name))


_ALIVE: WeakSet[KeptPictures] = WeakSet()
