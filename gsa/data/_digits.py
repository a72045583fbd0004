"""The embedded default: scikit-learn's 1 797 real handwritten digits, each turned at random; no download."""

import math

import lightning
import numpy
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

__all__ = ["DigitsDataModule", "turned_digits"]

_SPLITS = {"train": slice(0, 1200), "val": slice(1200, 1400), "test": slice(1400, 1797)}


def turned_digits(seed: int = 0, size: int = 16) -> tuple[Tensor, Tensor]:
    """All digits, in a seeded order, each turned by one angle drawn uniformly from the circle.

    The 8×8 digits (UCI, E. Alpaydin and C. Kaynak) are scaled to 3/4 of the frame, so that they stay in it
    at every angle, and turned in one bilinear step. Order and angles are functions of (seed, index).

    Args:
        seed: of order and angles.
        size: side of the frame in pixels.

    Returns:
        images [1797, 1, size, size] with mean 0 and variance 1 over all of them, labels int64 [1797].
    """
    pixels, labels = load_digits(return_X_y=True)
    random = numpy.random.default_rng(seed)
    order = random.permutation(len(labels))
    angles = torch.from_numpy(random.uniform(0, 2 * math.pi, len(labels)))
    images = torch.from_numpy(pixels[order]).view(-1, 1, 8, 8) / 16

    cosine, sine = angles.cos() * 4 / 3, angles.sin() * 4 / 3
    zero = torch.zeros_like(angles)
    inverse_turns = torch.stack((cosine, -sine, zero, sine, cosine, zero), dim=-1).view(-1, 2, 3)
    grid = F.affine_grid(inverse_turns, [len(labels), 1, size, size], align_corners=False)
    turned = F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    turned = (turned - turned.mean()) / turned.std()
    return turned.float(), torch.from_numpy(labels[order])


class DigitsDataModule(lightning.LightningDataModule):
    """Turned digits in three disjoint parts: 1 200 for training, 200 for validation, 397 for the test.

    Args:
        batch_size: digits a step.
        seed: of the split, the angles and the order of training.
        size: side of the pictures in pixels.
    """

    num_classes = 10
    in_channels = 1

    def __init__(self, batch_size: int = 32, seed: int = 0, size: int = 16) -> None:
        super().__init__()
        self.batch_size, self.seed, self.size = batch_size, seed, size

    def setup(self, stage: str | None = None) -> None:
        images, labels = turned_digits(self.seed, self.size)
        self.parts = {name: TensorDataset(images[part], labels[part]) for name, part in _SPLITS.items()}

    def train_dataloader(self) -> DataLoader:
        order = torch.Generator().manual_seed(self.seed)
        return DataLoader(self.parts["train"], self.batch_size, shuffle=True, drop_last=True, generator=order)

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self.parts["val"], batch_size=100)

    def test_dataloader(self) -> DataLoader:
        return DataLoader(self.parts["test"], batch_size=100)
