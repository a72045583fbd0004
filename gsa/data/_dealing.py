"""Pictures in folders of classes, dealt out to parts."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
from torch.utils.data import Subset

from gsa.data._class_folders import PictureFiles
from gsa.data._copies import refuse_copies
from gsa.data._division import by_groups, divided
from gsa.data._folds import in_fold
from gsa.data._groups import groups_of, is_alone, warn_of_folders

__all__ = ["Dealer"]


@dataclass(frozen=True)
class Dealer:
    """Deals pictures out to parts, every class by its share, where copies and groups stay together.

    Args:
        classes: their names.
        contents: path → digest of what a file holds.
        groups, copies, split_seed: as of `ImageFolderDataModule`.
    """

    classes: Sequence[str]
    contents: Mapping[str, str]
    groups: str | None
    copies: str
    split_seed: int

    def deal(self, files: PictureFiles, folder: Path, shares: Mapping[str, float]) -> dict[str, Subset]:
        """By part its share; what remains is for training.

        Args:
            files: in the folders of their classes.
            folder: that these are in.
            shares: of the parts but training.
        """
        named = {f"{part}_share": share for part, share in shares.items()}
        if self.groups is None:
            warn_of_folders(folder, self.classes, list(zip(self._below(files, folder), files.labels, strict=True)))
            same = [self.contents[path] for path, _ in files.files]
            *drawn, train = divided(files.labels, same, named, self.split_seed, self.classes.__getitem__)
        else:
            groups = self._judged_groups(files, folder)
            *drawn, train = by_groups(files.labels, groups, named, self.split_seed, self.classes.__getitem__)
        parts = {part: self.mixed(files, rows) for part, rows in zip(shares, drawn, strict=True)}
        return {"train": Subset(files, train), **parts}

    def fold(self, files: PictureFiles, folder: Path, fold: tuple[int, int], val_share: float) -> dict[str, Subset]:
        """The test part is one fold; the others are dealt out."""
        same = [self.contents[path] for path, _ in files.files]
        groups = None if self.groups is None else self._judged_groups(files, folder)
        rest, test = in_fold(files.labels, same, groups, fold, self.split_seed, self.classes.__getitem__)
        left = PictureFiles([files.files[row] for row in rest], files.read)
        return self.deal(left, folder, {"val": val_share}) | {"test": self.mixed(files, test)}

    def mixed(self, files: PictureFiles, rows: Sequence[int]) -> Subset:
        """In an order whose first few are of all classes, for whoever looks at no more (`limit_test_batches`)."""
        order = numpy.random.default_rng(self.split_seed).permutation(len(rows))
        return Subset(files, [rows[index] for index in order])

    def groups_of(self, files: PictureFiles, folder: Path) -> list[str]:
        """The group of every file; of each its own where none are asked for."""
        return groups_of(self._below(files, folder), self.groups or "folder")

    def in_groups(self, files: PictureFiles, folder: Path) -> dict[str, str]:
        """The group of every file that is in one."""
        groups = zip(files.files, self.groups_of(files, folder), strict=True)
        return {path: group for (path, _), group in groups if not is_alone(group)}

    def judge_copies(self, places: Mapping[str, str], kind: str) -> None:
        """Refuse files with the same content in two places, or warn of them, as `refuse_copies`."""
        try:
            refuse_copies(self.contents, places, kind)
        except ValueError as error:
            if self.copies == "refuse":
                raise ValueError(f"{error}: take one of each away, or let them be by data.copies=keep") from None
            warnings.warn(str(error), stacklevel=2)

    def _judged_groups(self, files: PictureFiles, folder: Path) -> list[str]:
        groups = self.groups_of(files, folder)
        self.judge_copies(dict(zip((path for path, _ in files.files), groups, strict=True)), "group")
        return groups

    def _below(self, files: PictureFiles, folder: Path) -> list[str]:
        return files.below(folder, self.classes)
