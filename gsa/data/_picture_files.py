"""Pictures in files, with their labels."""

import hashlib
import os
from collections.abc import Callable, Container, Iterable, Sequence

import torch
from torch import Tensor
from torch.utils.data import Dataset

from gsa.data._kept import KeptPictures

__all__ = ["ALONE", "PictureFiles", "digest_of", "is_alone"]

ALONE = f"\n{os.sep}"  # begins the group of a picture that belongs to no other, as it does no name


class PictureFiles(Dataset):
    """Files and their labels, read as squares.

    Args:
        files: path and label of each.
        groups: of each, what it belongs to, such as a patient; of one that belongs to no other, a name of its own.
        read: what reads a file, uint8 [C, H, W].
    """

    def __init__(self, files: Sequence[tuple[str, int]], groups: Sequence[str], read: KeptPictures) -> None:
        self.files, self.groups, self.read = list(files), list(groups), read

    @property
    def labels(self) -> list[int]:
        """Of every file."""
        return [label for _, label in self.files]

    @property
    def group_of(self) -> dict[str, str]:
        """Path → group, of every file that is in one."""
        return {path: group for (path, _), group in zip(self.files, self.groups, strict=True) if not is_alone(group)}

    def only(self, rows: Sequence[int]) -> "PictureFiles":
        """Some of them."""
        return PictureFiles([self.files[row] for row in rows], [self.groups[row] for row in rows], self.read)

    def without(self, paths: Container[str]) -> "PictureFiles":
        """The same but for some files.

        Raises:
            ValueError: a class that has no other files.
        """
        left = self.only([row for row, (path, _) in enumerate(self.files) if path not in paths])
        if gone := set(self.labels) - set(left.labels):
            lost = next(path for path, label in self.files if label == min(gone))
            raise ValueError(f"every class must have files that can be read, but of one class none can, such as {lost}")
        return left

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        path, label = self.files[index]
        try:
            return torch.from_numpy(self.read(path)), label
        except ValueError as error:
            raise OSError(f"since all were looked at, {error}") from error


def is_alone(group: str) -> bool:
    """Whether it is that of a picture that belongs to no other."""
    return group.startswith(ALONE)


def digest_of(files: Iterable[tuple[str, int]], known: Callable[[str], str]) -> str:
    """SHA-256 of files and their labels, in their order: of what is known of each by its path."""
    return hashlib.sha256(b"".join(os.fsencode(f"{known(path)}\0{label}\n") for path, label in files)).hexdigest()
