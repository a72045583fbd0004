"""The pictures that a trained network knows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

__all__ = ["PictureFormat"]


@dataclass(frozen=True)
class PictureFormat:
    """The pictures a network was trained on, and is to be shown.

    Attributes:
        data: name of the data set.
        in_channels, image_size: of a picture.
        num_classes: of the labels.
        mean, std: by channel, that pictures in [0, 1] are normalised with.
        classes: names of the labels; their numbers where they have no names.
    """

    data: str
    in_channels: int
    image_size: int
    num_classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "PictureFormat":
        """From plain values, as files hold them."""
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**plain)

    def with_classes(self, count: int) -> "PictureFormat":
        """The same pictures with so many classes; other ones than before have no names yet."""
        if count == self.num_classes:
            return self
        return replace(self, num_classes=count, classes=tuple(map(str, range(count))))

    def normalise(self, pictures: Tensor) -> Tensor:
        """[..., C, H, W] in [0, 1] → what the network is given.

        Raises:
            ValueError: whole numbers, such as bytes in 0 … 255.
        """
        if not pictures.is_floating_point():
            raise ValueError(f"pictures must be floating numbers in [0, 1], but got {pictures.dtype}")
        mean, std = (torch.tensor(values).view(-1, 1, 1).to(pictures) for values in (self.mean, self.std))
        return (pictures - mean) / std
