"""Pictures turned by angles of their own."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

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
    height, width = pictures.shape[-2:]
    frame = (height, width) if size is None else (size, size)
    cosine, sine, zero = angles.cos() / zoom, angles.sin() / zoom, torch.zeros_like(angles)
    # affine_grid counts −1…1 across the frame with y downwards: there, a point of the result at (x, y) comes from
    # (x·cos − y·sin, x·sin + y·cos); for H ≠ W the axes are rescaled to pixels before, and back after.
    inverse = torch.stack(
        (cosine, -sine * frame[0] / frame[1], zero, sine * frame[1] / frame[0], cosine, zero), dim=-1
    ).view(-1, 2, 3)
    out = pictures.new_empty(len(pictures), pictures.shape[1], *frame)
    for part in torch.arange(len(pictures)).split(4096):  # the grid is larger than the pictures
        grid = F.affine_grid(inverse[part].to(pictures.dtype), list(out[part].shape), align_corners=False)
        out[part] = F.grid_sample(pictures[part], grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return out
