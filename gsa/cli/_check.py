"""gsa check"""

import math
from argparse import Namespace

import torch

from gsa.groups import group
from gsa.saved import read
from gsa.symmetry import equivariance_error

__all__ = ["run"]


def run(options: Namespace) -> int:
    """The equivariance error of a trained network under each element of its group, on random pictures."""
    saved = read(options.checkpoint)
    network, known = saved.network, saved.pictures
    generator = torch.Generator().manual_seed(0)
    size = (4, known.in_channels, known.image_size, known.image_size)
    pictures = known.normalise(torch.rand(size, generator=generator))
    own = network.group
    measured = own if own.order > 1 else group("R4M")
    errors = equivariance_error(network, pictures, measured)
    exact = {g for g in measured.grid_elements if own.order > 1}
    broken = [
        g for g, error in errors.items() if not math.isfinite(error) or (g in exact and error > options.tolerance)
    ]
    print(f"{saved.model['name']} ({own.name}): relative change of the logits of 4 random pictures")
    for g, error in errors.items():
        note = "exact" if g in exact or g == 0 else "not in its group" if own.order == 1 else "sampled"
        print(f"    {measured.describe(g):20s} {error:.1e}  {'BROKEN' if g in broken else note}")
    return 1 if broken else 0
