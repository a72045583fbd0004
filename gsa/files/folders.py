"""Folders of pictures: which files are meant."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gsa.files._text import printable

__all__ = ["ENDINGS", "files_inside", "is_called_a_picture", "is_hidden", "passed_over"]

ENDINGS = (".apng", ".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")  # in folders
_LITTER = ("desktop.ini", "thumbs.db")  # which systems leave everywhere
_OFTEN = 5  # endings that are named


def is_called_a_picture(path: str | os.PathLike[str]) -> bool:
    """Whether a name ends as those of the formats do."""
    return os.fspath(path).lower().endswith(ENDINGS)


def is_hidden(path: str | os.PathLike[str]) -> bool:
    """Whether the name, or that of a folder on the way, begins with a dot, as macOS' ._a.tif beside a.tif."""
    return any(part.startswith(".") for part in Path(path).parts)


def passed_over(paths: Sequence[str | os.PathLike[str]]) -> str:
    """What is said of files whose names do not end as those of pictures do, by their most frequent endings."""
    endings = Counter(Path(path).suffix.lower() or "no ending" for path in paths)
    often = ", ".join(f"{ending}: {count}" for ending, count in endings.most_common(_OFTEN))
    return printable(f"{len(paths)} are passed over ({often}); expected {', '.join(ENDINGS)}")


def files_inside(folder: Path) -> list[str]:
    """Files at any depth, folder by folder, in linked ones too; but for hidden ones and what systems leave.

    A link to what the folder itself stands in is passed over.
    """
    places, seen = [], set(Path(os.path.realpath(folder)).parents)
    for place, below, names in os.walk(folder, followlinks=True):
        seen.add(Path(os.path.realpath(place)))
        below.sort()  # of two ways to a folder, systems list one or the other first
        below[:] = [name for name in below if Path(os.path.realpath(os.path.join(place, name))) not in seen]
        places.append((place, sorted(names)))
    places.sort()
    paths = [os.path.join(place, name) for place, names in places for name in names if name.lower() not in _LITTER]
    return [path for path in paths if not is_hidden(os.path.relpath(path, folder))]
