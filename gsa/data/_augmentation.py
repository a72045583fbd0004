"""Random changes of a training picture, by name; each a pure function of the numbers drawn for it."""

import math
from collections.abc import Sequence

import numpy
import torch
import torch.nn.functional as F
from torch import Tensor

from gsa.data._turn import turned

__all__ = ["AUGMENTATIONS", "augment"]


def _turns(picture: Tensor, random: numpy.random.Generator) -> Tensor:
    """By any angle, bilinear, zeros from outside."""
    return turned(picture[None], [random.uniform(0, 2 * math.pi)])[0]


def _flips(picture: Tensor, random: numpy.random.Generator) -> Tensor:
    """Left–right, one time in two."""
    return picture.flip(-1) if random.random() < 0.5 else picture


def _crops(picture: Tensor, random: numpy.random.Generator) -> Tensor:
    """Shifted by up to an eighth of the side, zeros from outside."""
    height, width = picture.shape[-2:]
    most = max(height // 8, 1), max(width // 8, 1)
    down, right = (int(random.integers(-m, m + 1)) for m in most)
    padded = F.pad(picture, (most[1], most[1], most[0], most[0]))
    return padded[:, most[0] - down :, most[1] - right :][:, :height, :width]


def _randaugment(picture: Tensor, random: numpy.random.Generator) -> Tensor:
    """Two changes of colour or form (Cubuk et al. 2020), torchvision's; forms bilinear, zeros from outside."""
    from torchvision.transforms.v2 import InterpolationMode, RandAugment

    with torch.random.fork_rng(devices=[]):  # which torchvision draws from
        torch.manual_seed(int(random.integers(2**63)))
        changed: Tensor = RandAugment(interpolation=InterpolationMode.BILINEAR)(picture)
    return changed.clamp(0, 1)


AUGMENTATIONS = {"turns": _turns, "flips": _flips, "crops": _crops, "randaugment": _randaugment}


def augment(picture: Tensor, names: Sequence[str], random: numpy.random.Generator) -> Tensor:
    """Change a picture in the ways named, one after the other: [C, H, W] → [C, H, W].

    Args:
        picture: float, [C, H, W].
        names: keys of AUGMENTATIONS.
        random: where all the numbers are drawn from.
    """
    for name in names:
        picture = AUGMENTATIONS[name](picture, random)
    return picture
