"""Pictures in files, dealt out to parts."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy
from torch.utils.data import Subset

from gsa.data._division import by_groups, divided
from gsa.data._picture_files import PictureFiles
from gsa.data.folder._folds import in_fold
from gsa.files import printable

__all__ = ["Dealer"]


@dataclass(frozen=True)
class Dealer:
    """Deals pictures out to parts, every class by its share, where copies and groups stay together.

    Args:
        classes: their names.
        contents: path → digest of what a file holds.
        in_groups: whether pictures of a group stay together.
        copies, split_seed: as of `ImageFolderDataModule`.
    """

    classes: Sequence[str]
    contents: Mapping[str, str]
    in_groups: bool
    copies: str
    split_seed: int

    def deal(self, files: PictureFiles, shares: Mapping[str, float]) -> dict[str, Subset]:
        """By part its share; what remains is for training.

        Args:
            files: of all parts.
            shares: of the parts but training.
        """
        named = {f"{part}_share": share for part, share in shares.items()}
        if self.in_groups:
            self._judge_groups(files)
            *drawn, train = by_groups(files.labels, files.groups, named, self.split_seed, self.classes.__getitem__)
        else:
            same = [self.contents[path] for path, _ in files.files]
            *drawn, train = divided(files.labels, same, named, self.split_seed, self.classes.__getitem__)
        parts = {part: self.mixed(files, rows) for part, rows in zip(shares, drawn, strict=True)}
        return {"train": Subset(files, train), **parts}

    def fold(self, files: PictureFiles, fold: tuple[int, int], val_share: float) -> dict[str, Subset]:
        """The test part is one fold; the others are dealt out."""
        same = [self.contents[path] for path, _ in files.files]
        if self.in_groups:
            self._judge_groups(files)
        groups = files.groups if self.in_groups else None
        rest, test = in_fold(files.labels, same, groups, fold, self.split_seed, self.classes.__getitem__)
        return self.deal(files.only(rest), {"val": val_share}) | {"test": self.mixed(files, test)}

    def mixed(self, files: PictureFiles, rows: Sequence[int]) -> Subset:
        """In an order whose first few are of all classes, for whoever looks at no more (`limit_test_batches`)."""
        order = numpy.random.default_rng(self.split_seed).permutation(len(rows))
        return Subset(files, [rows[index] for index in order])

    def judge_copies(self, places: Mapping[str, str], kind: str) -> None:
        """Refuse the same content in two places, or warn of it: a picture that was trained on would be tested, or be of
        two classes.

        Args:
            places: path → where it is: its class, group or part.
            kind: of the places, for messages, such as "class".

        Raises:
            ValueError: naming two files, and how many there are.
        """
        first: dict[str, str] = {}
        pairs = [(first.setdefault(self.contents[path], path), path) for path in places]
        if not (wrong := [pair for pair in pairs if places[pair[0]] != places[pair[1]]]):
            return
        one, other = map(printable, wrong[0])
        told = (
            f"a picture must be in one {kind} only, but of the files {len(wrong)} hold the same as one in another "
            f"{kind}, such as {other} and {one}"
        )
        if self.copies == "refuse":
            raise ValueError(f"{told}: take one of each away, or let them be by data.copies=keep")
        warnings.warn(told, stacklevel=2)

    def _judge_groups(self, files: PictureFiles) -> None:
        groups = zip(files.files, files.groups, strict=True)
        self.judge_copies({path: group for (path, _), group in groups}, "group")
