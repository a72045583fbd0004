"""Pictures turned by angles of their own."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gsa.groups import sample_bilinearly

__all__ = ["turned"]


def turned(pictures: Tensor, angles: Sequence[float] | Tensor, size: int | None = None, zoom: float = 1.0) -> Tensor:
    """Turn every picture about its centre by its own angle, in one bilinear step, with zeros from outside.

    Args:
        pictures: float [N, C, H, W].
        angles: [N], radians, counter-clockwise.
        size: side of the frame that comes out; that of the pictures when None.
        zoom: how much of the frame's side the picture's side fills.

    Returns:
        [N, C, size, size]
    """
    angles = torch.as_tensor(angles, dtype=torch.float64)
    cosine, sine = angles.cos(), angles.sin()
    rotations = torch.stack((cosine, -sine, sine, cosine), dim=-1).view(-1, 2, 2)
    return sample_bilinearly(pictures, rotations, None if size is None else (size, size), zoom)
