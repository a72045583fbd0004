"""Random changes of training pictures, by name; each a pure function of the numbers drawn for every picture."""

import functools
import math
from collections.abc import Sequence

import numpy
import torch
import torch.nn.functional as F
from numpy.random import Generator
from torch import Tensor

__all__ = ["augment"]

_STRETCH = 0.15


def _turn(random: Generator) -> list[list[float]]:
    """By any angle."""
    angle = random.uniform(0, 2 * math.pi)
    return [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]


def _stretch(random: Generator) -> list[list[float]]:
    """exp(S) with S symmetric, entries up to 0.15: by factors of up to 1.35 along directions at right angles.

    With S = m I + D and D² = r² I: exp(S) = eᵐ (cosh r I + sinh(r)/r D).
    """
    along, skew, across = random.uniform(-_STRETCH, _STRETCH, 3)
    mean, half = (along + across) / 2, (along - across) / 2
    r = math.hypot(half, skew)
    even, odd = math.exp(mean) * math.cosh(r), math.exp(mean) * (math.sinh(r) / r if r else 1)
    return [[even + odd * half, odd * skew], [odd * skew, even - odd * half]]


def _mapped(pictures: Tensor, linear: numpy.ndarray) -> Tensor:
    """The pictures at A·(x, y) about their centres: bicubic, which blurs less than bilinear; zeros from outside."""
    height, width = pictures.shape[-2:]
    side = numpy.array([width, height])
    halves = linear * side / side[:, None]  # of coordinates from −1 to 1
    matrices = torch.from_numpy(numpy.pad(halves, ((0, 0), (0, 0), (0, 1)))).to(pictures)
    grid = F.affine_grid(matrices, list(pictures.shape), align_corners=False)
    return F.grid_sample(pictures, grid, mode="bicubic", align_corners=False).clamp(0, 1)


def _flips(pictures: Tensor, randoms: Sequence[Generator]) -> Tensor:
    """Left–right, one time in two."""
    chosen = torch.tensor([random.random() < 0.5 for random in randoms])
    return torch.where(chosen[:, None, None, None], pictures.flip(-1), pictures)


def _crops(pictures: Tensor, randoms: Sequence[Generator]) -> Tensor:
    """Shifted by up to an eighth of the side, zeros from outside."""
    height, width = pictures.shape[-2:]
    most = max(height // 8, 1), max(width // 8, 1)
    padded = F.pad(pictures, (most[1], most[1], most[0], most[0]))
    shifted = []
    for picture, random in zip(padded, randoms, strict=True):
        top, left = (m - int(random.integers(-m, m + 1)) for m in most)
        shifted.append(picture[:, top : top + height, left : left + width])
    return torch.stack(shifted)


def _randaugment(pictures: Tensor, randoms: Sequence[Generator]) -> Tensor:
    """Two changes of colour or form (Cubuk et al. 2020), torchvision's; forms bilinear, zeros from outside."""
    from torchvision.transforms.v2 import InterpolationMode, RandAugment

    change, changed = RandAugment(interpolation=InterpolationMode.BILINEAR), []
    with torch.random.fork_rng(devices=[]):  # which torchvision draws from
        for picture, random in zip(pictures, randoms, strict=True):
            torch.manual_seed(int(random.integers(2**63)))
            changed.append(change(picture))
    return torch.stack(changed).clamp(0, 1)


_LINEAR = {"turns": _turn, "stretches": _stretch}
_OTHER = {"flips": _flips, "crops": _crops, "randaugment": _randaugment}


def augment(pictures: Tensor, names: Sequence[str], randoms: Sequence[Generator]) -> Tensor:
    """Change pictures in the ways named, each by numbers of its own: [N, C, H, W] → [N, C, H, W].

    Turns and stretches come first, in one bicubic step; the others follow, one after the other.

    Args:
        pictures: float, [N, C, H, W], in [0, 1].
        names: out of those of `data.augmentation`.
        randoms: N generators; all the numbers for a picture are drawn from its own.
    """
    maps = [numpy.array([_LINEAR[name](random) for random in randoms]) for name in names if name in _LINEAR]
    if maps:
        pictures = _mapped(pictures, functools.reduce(numpy.matmul, maps))
    for name in names:
        if name in _OTHER:
            pictures = _OTHER[name](pictures, randoms)
    return pictures
