"""Pictures in one folder a class: which files there are."""

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from gsa.data._kept import KeptPictures
from gsa.data._parts import rows_of
from gsa.files import printable
from gsa.files.folders import ENDINGS, files_inside, is_called_a_picture, is_hidden, passed_over
from gsa.files.pictures import count_pages

__all__ = ["PictureFiles", "class_names", "digest_of", "pages_in"]

Files = list[tuple[str, int]]
_OPENED = 50
_READ = ", ".join(ENDINGS)


class PictureFiles(Dataset):
    """Files and the labels of their folders, read as squares.

    Args:
        files: path and label of each.
        read: what reads a file, uint8 [C, H, W].
    """

    def __init__(self, files: Files, read: KeptPictures) -> None:
        self.files, self.read = files, read

    @property
    def labels(self) -> list[int]:
        """Of every file."""
        return [label for _, label in self.files]

    @classmethod
    def of_folder(
        cls, folder: Path, classes: Sequence[str], read: KeptPictures, may_lack: bool = False
    ) -> "PictureFiles":
        """The files at folder/<class>/** whose names end as pictures' do, in the order of their names; others warn.

        Raises:
            FileNotFoundError: a class without any; of those that may lack them, all.
        """
        found: Files = []
        others: list[str] = []
        for label, name in enumerate(classes):
            inside = files_inside(folder / name)
            pictures = [(path, label) for path in inside if is_called_a_picture(path)]
            if not pictures and not (may_lack and (found or label + 1 < len(classes))):
                raise FileNotFoundError(
                    f"there are no pictures in {folder / name}; expected files of {_READ} that are not hidden: a class "
                    "without any is left out by taking its folder away"
                )
            found += pictures
            others += [path for path in inside if not is_called_a_picture(path)]
        _tell_of(others, folder)
        _tell_of_loose(folder)
        return cls(found, read)

    def below(self, folder: Path, classes: Sequence[str]) -> list[str]:
        """Path of every file below the folder of its class, which is in `folder`."""
        return [os.path.relpath(path, folder / classes[label]) for path, label in self.files]

    def without(self, paths: Container[str]) -> "PictureFiles":
        """The same but for some files.

        Raises:
            ValueError: a class that has no other files.
        """
        left = [(path, label) for path, label in self.files if path not in paths]
        if gone := {label for _, label in self.files} - {label for _, label in left}:
            lost = [path for path, label in self.files if label == min(gone)]
            raise ValueError(
                f"every class must have files that can be read, but of one class none can, such as {lost[0]}"
            )
        return PictureFiles(left, self.read)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        path, label = self.files[index]
        try:
            return torch.from_numpy(self.read(path)), label
        except ValueError as error:
            raise OSError(f"since all were looked at, {error}") from error


def pages_in(folders: Sequence[Path]) -> int:
    """Pages that most pictures have, of the first fifty in each folder that can be opened."""
    counts: Counter[int] = Counter()
    for folder in folders:
        for path in list(filter(is_called_a_picture, files_inside(folder)))[:_OPENED]:
            with suppress(ValueError):
                counts[count_pages(path)] += 1
    return max(counts, key=lambda pages: (counts[pages], pages), default=1)


def digest_of(pictures: Any, root: Path, contents: Mapping[str, str] | None = None) -> str:
    """SHA-256 of paths below a folder and labels, in their order: of `PictureFiles`, or of a `Subset` of them.

    Where `contents` has the digest of what every file holds, of these instead of the paths.
    """
    held, rows = rows_of(pictures)
    files = (held.files[row] for row in rows)
    known = (contents[path] if contents else os.path.relpath(path, root) for path, _ in files)
    lines = (os.fsencode(f"{word}\0{held.files[row][1]}\n") for word, row in zip(known, rows, strict=True))
    return hashlib.sha256(b"".join(lines)).hexdigest()


def class_names(folder: Path) -> list[str]:
    """Names of the folders in a folder, but for hidden ones."""
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def _tell_of(others: list[str], folder: Path) -> None:
    """Warn of files that are no part, because of their names."""
    if others:
        warnings.warn(f"of the files in {folder}, {passed_over(others)}", stacklevel=2)


def _tell_of_loose(folder: Path) -> None:
    """Warn of pictures that lie beside the folders of the classes."""
    names = [entry.name for entry in os.scandir(folder) if entry.is_file()]
    if loose := [name for name in names if is_called_a_picture(name) and not is_hidden(name)]:
        warnings.warn(
            f"pictures in {folder} itself ({len(loose)}) are of no class and passed over, such as "
            f"{printable(min(loose))}",
            stacklevel=2,
        )
