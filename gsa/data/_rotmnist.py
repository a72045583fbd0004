"""RotMNIST: handwritten digits, each turned by one random angle; the official archive, or generated from MNIST."""

import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy
import torch
from torch import Tensor

from gsa._limits import ROTMNIST, check_limits
from gsa.data._amat import ARCHIVE, prepare_archive
from gsa.data._cache import read_cache
from gsa.data._disturbed import cluttered, occluded
from gsa.data._idx import read_digits
from gsa.data._pictures import LabelledPictures, PictureDataModule, pictures_in_memory
from gsa.data._turn import turned

__all__ = ["RotMNISTDataModule", "turned_mnist"]

_SPLITS = {"train": slice(0, 10_000), "val": slice(10_000, 12_000), "test": slice(12_000, 62_000)}
_SIZES = {part: rows.stop - rows.start for part, rows in _SPLITS.items()}


def turned_mnist(root: str | os.PathLike[str], seed: int = 0, angle_seed: int | None = None) -> tuple[Tensor, Tensor]:
    """A split of RotMNIST's sizes generated from MNIST; not the official one.

    Training and validation are the first 12 000 digits of a seeded permutation of MNIST's training digits, the test
    the other 48 000 and the first 2 000 of MNIST's test digits; each is turned by one angle drawn uniformly
    from the circle, bilinear. Order and angles are functions of (seed, index).

    Args:
        root: holds MNIST/raw, the files of MNIST in their original format.
        seed: of order and angles.
        angle_seed: of the angles alone: the same digits in the same order, turned otherwise; None is the split itself.

    Returns:
        pictures [62000, 1, 28, 28] in [0, 1], labels int64 [62000]: 10 000 / 2 000 / 50 000 in this order.

    Raises:
        FileNotFoundError: MNIST's files are not there.
        ValueError: a file that is not what it should be, by name.
    """
    raw = Path(root) / "MNIST" / "raw"
    (train, train_labels), (test, test_labels) = read_digits(raw, "train", 60_000), read_digits(raw, "t10k", 2_000)
    random = numpy.random.default_rng(seed)
    order = torch.from_numpy(random.permutation(60_000))
    of_angles = random if angle_seed is None else numpy.random.default_rng(angle_seed)
    angles = torch.from_numpy(of_angles.uniform(0, 2 * math.pi, 62_000))
    pictures = torch.cat((train[order], test))[:, None] / 255
    return turned(pictures, angles).clamp_(0, 1), torch.cat((train_labels[order], test_labels))


class RotMNISTDataModule(PictureDataModule):
    """Turned handwritten digits: 10 000 for training, 2 000 for validation, 50 000 for the test.

    Args:
        root: folder of the data.
        source: "official", the archive of Larochelle et al. 2007 in root (the last 2 000 of its 12 000 training rows
            are for validation), or "mnist", generated from MNIST's raw files under root (see `turned_mnist`).
        download: fetch the official archive when it is not there.
        split_seed: of the generated split and angles, of clutter and occlusion; part of the data's identity, apart
            from `seed`.
        batch_size, seed, augmentation, num_workers, eval_batch_size, train_pictures: as in `PictureDataModule`.
        clutter: fragments of other digits of the same part in every picture, 7×7 pixels each.
        occlusion: side of a square that is missing from every picture, in pixels.

    Raises:
        ValueError: unknown source; clutter or occlusion out of their range.
    """

    name = "rotmnist"
    num_classes = 10
    in_channels = 1
    image_size = 28
    sizes = _SIZES

    def __init__(
        self,
        root: str | os.PathLike[str] = "data",
        source: str = "official",
        download: bool = False,
        batch_size: int = 8,
        split_seed: int = 0,
        seed: int = 0,
        augmentation: Sequence[str] = (),
        num_workers: int = 0,
        eval_batch_size: int | None = None,
        clutter: int = 0,
        occlusion: int = 0,
        train_pictures: int | None = None,
    ) -> None:
        super().__init__(batch_size, seed, augmentation, num_workers, eval_batch_size, train_pictures)
        check_limits(ROTMNIST, locals())
        if not 0 <= occlusion <= self.image_size:
            raise ValueError(f"occlusion must be in [0, {self.image_size}] pixels, but got {occlusion}")
        self.root, self.download, self.split_seed = Path(root), download, split_seed
        self.official = source == "official"
        self.source = "official archive" if self.official else "generated from MNIST, not the official split"
        self.clutter, self.occlusion = clutter, occlusion
        self.source += f", with {clutter} fragments of others" if clutter else ""
        self.source += f", {occlusion}×{occlusion} pixels missing" if occlusion else ""

    def prepare_data(self) -> None:
        if self.official:
            prepare_archive(self.root, self.download)

    def load(self) -> dict[str, LabelledPictures]:
        if self.official:
            pictures, labels = read_cache(self.root)
        else:
            pictures, labels = turned_mnist(self.root, self.split_seed)
        pictures = self._disturbed(pictures.float())
        training = pictures[_SPLITS["train"]]
        self.mean, self.std = [training.mean().item()], [training.std().item()]
        where = ARCHIVE if self.official else "turned MNIST"
        return {
            part: pictures_in_memory(pictures[rows], labels[rows], self.num_classes, f"{where}, {part} part")
            for part, rows in _SPLITS.items()
        }

    def _disturbed(self, pictures: Tensor) -> Tensor:
        """Each part on its own: no fragment of one is seen in another."""
        if not self.clutter and not self.occlusion:
            return pictures
        parts = []
        for number, rows in enumerate(_SPLITS.values(), 1):
            random = numpy.random.default_rng((self.split_seed, number))
            parts.append(occluded(cluttered(pictures[rows], self.clutter, random), self.occlusion, random))
        return torch.cat(parts)
