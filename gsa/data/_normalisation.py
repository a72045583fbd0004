"""Pictures as networks are given them, and as they were read."""

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["Normalisation"]


class Normalisation:
    """(x − mean) / std by channel.

    Args:
        mean, std: a number for each channel.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean = torch.as_tensor(mean, dtype=torch.float32).view(-1, 1, 1)
        self.std = torch.as_tensor(std, dtype=torch.float32).view(-1, 1, 1)

    def normalise(self, pictures: Tensor) -> Tensor:
        """What networks are given: [..., C, H, W] in [0, 1] → the same, less the mean, over the deviation."""
        return (pictures - self.mean) / self.std

    def as_read(self, pictures: Tensor) -> Tensor:
        """The opposite of `normalise`."""
        return pictures * self.std + self.mean
