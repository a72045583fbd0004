"""Files by what a table calls them."""

import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from gsa.files import printable
from gsa.files.folders import files_inside, is_called_a_picture

__all__ = ["NamedFiles"]

_SHOWN = 5  # files of a message


class NamedFiles:
    """The pictures below a folder: by their paths, or by names that no other has, with their endings or without.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = [path for path in files_inside(root) if is_called_a_picture(path)]
        below = [_normal(os.path.relpath(path, root)) for path in self.paths]
        self._by_path, self._by_name = _sorted(below), _sorted(list(map(os.path.basename, below)))

    def __getitem__(self, name: str) -> str:
        """The path of a file; below the folder where there is none.

        Raises:
            ValueError: the name of several.
        """
        path = os.path.normpath(os.path.join(self.root, name))
        if os.path.isfile(path):
            return path
        name = _normal(os.path.normpath(name.replace("\\", "/")))  # as Windows has it
        rows = self._by_path.get(name) or self._by_name.get(name) or []
        if len(rows) > 1:
            named = ", ".join(printable(os.path.relpath(self.paths[row], self.root)) for row in rows[:_SHOWN])
            raise ValueError(f"must name one file, but {printable(name)} is the name of {len(rows)}: {named}")
        return self.paths[rows[0]] if rows else path


def _normal(path: str) -> str:
    """Accents as one sign, which macOS has as two."""
    return unicodedata.normalize("NFC", path)


def _sorted(names: list[str]) -> Mapping[str, list[int]]:
    """The places of every name, with its ending and without."""
    found: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        for word in {name, os.path.splitext(name)[0]}:
            found.setdefault(word, []).append(row)
    return found
