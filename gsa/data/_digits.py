"""The embedded default: scikit-learn's 1 797 real handwritten digits, each turned at random; no download."""

import math
from collections.abc import Sequence

import numpy
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from gsa._limits import DIGITS, check_limits
from gsa.data._pictures import LabelledPictures, PictureDataModule, pictures_in_memory
from gsa.data._turn import turned

__all__ = ["DigitsDataModule", "turned_digits"]

_SPLITS = {"train": slice(0, 1200), "val": slice(1200, 1400), "test": slice(1400, 1797)}
_TURNED = {"all": "turned", "test": "turned for the test", "none": "upright"}
_UPRIGHT: dict[str, tuple[str, ...]] = {"all": (), "test": ("train", "val"), "none": ("train", "val", "test")}
_SIZES = {part: rows.stop - rows.start for part, rows in _SPLITS.items()}


def turned_digits(seed: int = 0, size: int = 12, upright: bool = False) -> tuple[Tensor, Tensor]:
    """All digits, in a seeded order, each turned by one angle drawn uniformly from the circle.

    The 8×8 digits (UCI, E. Alpaydin and C. Kaynak) are scaled to 3/4 of the frame, out of which no more than
    their corners turn, and turned in one bilinear step. Order and angles are functions of (seed, index).

    Args:
        seed: of order and angles.
        size: side of the frame in pixels.
        upright: the same digits as they were written, scaled alike.

    Returns:
        pictures [1797, 1, size, size] in [0, 1], labels int64 [1797].
    """
    pixels, labels = load_digits(return_X_y=True)
    random = numpy.random.default_rng(seed)
    order = random.permutation(len(labels))
    angles = torch.from_numpy(random.uniform(0, 2 * math.pi, len(labels)))
    angles = torch.zeros_like(angles) if upright else angles
    pictures = torch.from_numpy(pixels[order]).view(-1, 1, 8, 8) / 16
    return turned(pictures, angles, size, zoom=3 / 4).float().clamp(0, 1), torch.from_numpy(labels[order])


class DigitsDataModule(PictureDataModule):
    """Turned digits: 1 200 for training, 200 for validation, 397 for the test.

    Args:
        size: side of the pictures in pixels.
        split_seed: of the split and the angles; part of the data's identity, apart from `seed`.
        turned: which digits are, "all"; "test", to see what is made of turned ones by who has learned upright ones; or
            "none".
        batch_size, seed, augmentation, num_workers, eval_batch_size, train_pictures: as in `PictureDataModule`.

    Raises:
        ValueError: pictures smaller than the digits; another choice of those that are turned.
    """

    name = "digits"
    num_classes = 10
    in_channels = 1
    sizes = _SIZES

    def __init__(
        self,
        size: int = 12,
        batch_size: int = 16,
        split_seed: int = 0,
        seed: int = 0,
        augmentation: Sequence[str] = (),
        num_workers: int = 0,
        eval_batch_size: int | None = None,
        train_pictures: int | None = None,
        turned: str = "all",
    ) -> None:
        super().__init__(batch_size, seed, augmentation, num_workers, eval_batch_size, train_pictures)
        check_limits(DIGITS, locals())
        if size < 8:
            raise ValueError(f"size must be at least the 8 pixels of the digits, but got {size}")
        self.image_size, self.split_seed, self.turned = size, split_seed, turned
        self.source = f"scikit-learn's load_digits, {_TURNED[turned]}"

    def load(self) -> dict[str, LabelledPictures]:
        pictures, labels = turned_digits(self.split_seed, self.image_size)
        for part in _UPRIGHT[self.turned]:
            pictures[_SPLITS[part]] = turned_digits(self.split_seed, self.image_size, upright=True)[0][_SPLITS[part]]
        training = pictures[_SPLITS["train"]]
        self.mean, self.std = [training.mean().item()], [training.std().item()]
        return {
            part: pictures_in_memory(pictures[rows], labels[rows], self.num_classes, self.name)
            for part, rows in _SPLITS.items()
        }
