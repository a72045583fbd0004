"""The pictures that a trained network knows."""

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gsa._checks import check_tensor, is_count

if TYPE_CHECKING:
    from gsa.files.reading import PictureReader

__all__ = ["PictureFormat"]

_LARGEST_SIDE = 8192  # pixels


@dataclass(frozen=True)
class PictureFormat:
    """The pictures a network was trained on, and is to be shown.

    Attributes:
        data: name of the data set.
        in_channels, image_size: of a picture.
        num_classes: of the labels.
        mean, std: by channel, that pictures in [0, 1] are normalised with.
        classes: names of the labels; their numbers where they have no names.
        white: the whole number of more than 8 bits that is white in files, or that of each page; None where that is the
            largest they hold.
        pages: whether channels are the pages of a file, even if there are one or three.
        whole: whether all of a picture was shown, on grey where it is no square, and not its centre only.
    """

    data: str
    in_channels: int
    image_size: int
    num_classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...]
    white: int | tuple[int, ...] | None = None  # which files of earlier versions lack, as they do what follows
    pages: bool = False
    whole: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "PictureFormat":
        """From plain values, as files hold them.

        Raises:
            ValueError: other values than those of pictures.
        """
        if not isinstance(values, Mapping) or {*values, "white", "pages", "whole"} != set(cls.__dataclass_fields__):
            raise ValueError(f"expected values of {', '.join(cls.__dataclass_fields__)}")
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        found = cls(**plain)
        if not (isinstance(found.data, str) and found.data.isprintable()):
            raise ValueError("data must be the name of a data set")
        if not (is_count(found.in_channels, 1) and is_count(found.num_classes)):
            raise ValueError("in_channels must be a positive integer, and num_classes one or 0")
        if not (is_count(found.image_size, 1) and found.image_size <= _LARGEST_SIDE):
            raise ValueError(f"image_size must be a number of pixels from 1 to {_LARGEST_SIDE}")
        if not (_are_numbers(found.mean, found.in_channels) and _are_numbers(found.std, found.in_channels)):
            raise ValueError("mean and std need a finite number for each channel")
        if not all(value > 0 for value in found.std):
            raise ValueError("std must be positive")
        if not (isinstance(found.pages, bool) and isinstance(found.whole, bool)):
            raise ValueError("pages and whole must be true or false")
        whites = found.white if isinstance(found.white, tuple) else (found.white,)
        fits = whites == (found.white,) or (found.pages and len(whites) == found.in_channels)
        if found.white is not None and not (fits and all(is_count(white, 1) for white in whites)):
            raise ValueError("white must be a positive integer, or one for each page, or None")
        names = found.classes
        if not (
            isinstance(names, tuple) and len(names) == found.num_classes and all(isinstance(n, str) for n in names)
        ):
            raise ValueError("classes must be a name for each class")
        return found

    def plain(self) -> dict[str, Any]:
        """What `of` takes; without later attributes at their defaults, so that earlier versions can read it."""
        return {name: value for name, value in asdict(self).items() if value is not None and value is not False}

    def with_classes(self, count: int) -> "PictureFormat":
        """The same pictures with so many classes; other ones than before have no names yet."""
        if count == self.num_classes:
            return self
        return replace(self, num_classes=count, classes=tuple(map(str, range(count))))

    def reader(self) -> "PictureReader":
        """What reads files as they were read in training; needs Pillow."""
        from gsa.files.reading import PictureReader

        return PictureReader(self.image_size, self.in_channels, self.white, self.pages, self.whole)

    def read(self, path: str | os.PathLike[str]) -> Tensor:
        """A file as it was read in training: [C, image_size, image_size] in [0, 1], to be normalised.

        Raises:
            ValueError: one that cannot be read, or has other channels.
        """
        return torch.from_numpy(self.reader()(path)) / 255

    def normalise(self, pictures: Tensor) -> Tensor:
        """[..., C, H, W] in [0, 1] → what the network is given.

        Raises:
            ValueError: whole numbers, such as bytes in 0 … 255; what is no tensor.
        """
        check_tensor(pictures, "normalise")
        if not pictures.is_floating_point():
            raise ValueError(f"pictures must be floating numbers in [0, 1], but got {pictures.dtype}")
        mean, std = (torch.tensor(values).view(-1, 1, 1).to(pictures) for values in (self.mean, self.std))
        return (pictures - mean) / std


def _are_numbers(values: Any, count: int) -> bool:
    """Whether these are as many finite numbers."""
    return (
        isinstance(values, tuple)
        and len(values) == count
        and all(isinstance(v, int | float) and abs(v) < 1e30 and math.isfinite(v) for v in values)
    )
