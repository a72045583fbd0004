"""Random changes of a training picture, by name; each a pure function of the numbers drawn for it."""

import functools
import math
from collections.abc import Sequence

import numpy
import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["AUGMENTATIONS", "augment"]

_STRETCH = 0.15


def _turns(random: numpy.random.Generator) -> numpy.ndarray:
    """By any angle."""
    angle = random.uniform(0, 2 * math.pi)
    return numpy.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])


def _stretches(random: numpy.random.Generator) -> numpy.ndarray:
    """exp(S) with S symmetric, entries up to 0.15: by factors of up to 1.35 along directions at right angles."""
    along, skew, across = random.uniform(-_STRETCH, _STRETCH, 3)
    matrix: numpy.ndarray = torch.matrix_exp(torch.tensor([[along, skew], [skew, across]], dtype=torch.float64)).numpy()
    return matrix


def _mapped(picture: Tensor, linear: numpy.ndarray) -> Tensor:
    """The picture at A·(x, y) about its centre: bicubic, which blurs less than bilinear; zeros from outside."""
    height, width = picture.shape[-2:]
    side = numpy.array([width, height])
    halves = linear * side / side[:, None]  # of coordinates from −1 to 1
    matrix = torch.from_numpy(numpy.pad(halves, ((0, 0), (0, 1)))[None]).to(picture)
    grid = F.affine_grid(matrix, [1, *picture.shape], align_corners=False)
    return F.grid_sample(picture[None], grid, mode="bicubic", align_corners=False)[0].clamp(0, 1)


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


_LINEAR = {"turns": _turns, "stretches": _stretches}
_OTHER = {"flips": _flips, "crops": _crops, "randaugment": _randaugment}
AUGMENTATIONS = (*_LINEAR, *_OTHER)


def augment(picture: Tensor, names: Sequence[str], random: numpy.random.Generator) -> Tensor:
    """Change a picture in the ways named: [C, H, W] → [C, H, W].

    Turns and stretches come first, in one bicubic step; the others follow, one after the other.

    Args:
        picture: float, [C, H, W], in [0, 1].
        names: out of AUGMENTATIONS.
        random: where all the numbers are drawn from.
    """
    maps = [_LINEAR[name](random) for name in names if name in _LINEAR]
    if maps:
        picture = _mapped(picture, functools.reduce(numpy.matmul, maps))
    for name in names:
        if name in _OTHER:
            picture = _OTHER[name](picture, random)
    return picture
