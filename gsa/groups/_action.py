"""How a planar transformation moves a picture: (L_g f)(i) = f(g⁻¹ i).

Coordinates are centred, x to the right and y up. Transformations that map the pixel grid to itself (quarter
turns, mirrors and their products) are index permutations and therefore exact; all others are sampled.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["act_on_plane", "is_on_grid"]


def is_on_grid(matrix: Tensor) -> bool:
    """Whether a 2×2 orthogonal matrix maps the pixel grid to itself (its entries are 0 and ±1)."""
    return bool((matrix == matrix.round()).all())


def act_on_plane(x: Tensor, matrix: Tensor) -> Tensor:
    """Move the last two axes of `x` by an orthogonal matrix.

        (L_g f)(i) = f(g⁻¹ i)

    Args:
        x: [..., H, W], any leading axes; rows run downwards (along −y).
        matrix: [2, 2], float64, acting on (x, y).

    Returns:
        [..., H, W]; [..., W, H] when the matrix swaps the axes (odd quarter turns). On-grid matrices permute
        pixels and keep every value; others are sampled bilinearly with zeros outside the picture.
    """
    if is_on_grid(matrix):
        return _permute_pixels(x, matrix)
    return _sample_bilinearly(x, matrix)


def _permute_pixels(x: Tensor, matrix: Tensor) -> Tensor:
    """g = R(90° k) Mˢ: the mirror first (left–right flip), then k counter-clockwise quarter turns."""
    (a, b), (c, d) = matrix.round().int().tolist()
    mirrored = a * d - b * c < 0
    if mirrored:
        x, a, c = x.flip(-1), -a, -c
    quarter_turns = {(1, 0): 0, (0, 1): 1, (-1, 0): 2, (0, -1): 3}[a, c]
    return torch.rot90(x, quarter_turns, (-2, -1))


def _sample_bilinearly(x: Tensor, matrix: Tensor) -> Tensor:
    height, width = x.shape[-2:]
    half_width, half_height = (width - 1) / 2, (height - 1) / 2
    columns = torch.arange(width, device=x.device, dtype=torch.float64) - half_width
    rows = half_height - torch.arange(height, device=x.device, dtype=torch.float64)
    target = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), dim=-1)  # [H, W, (x, y)]
    source = target @ matrix.to(x.device)  # g⁻¹ i = gᵀ i, written for row vectors
    unit = torch.tensor([max(half_width, 0.5), -max(half_height, 0.5)], device=x.device, dtype=torch.float64)
    grid = (source / unit).to(x.dtype)  # grid_sample counts −1…1 between the outer pixel centres, y downwards
    planes = x.reshape(1, -1, height, width)
    moved = F.grid_sample(planes, grid[None], mode="bilinear", padding_mode="zeros", align_corners=True)
    return moved.reshape(x.shape)
