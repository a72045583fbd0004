"""How a planar transformation moves a picture: (L_g f)(i) = f(g⁻¹ i).

Coordinates are centred, x to the right and y up. Transformations that map the pixel grid to itself (quarter
turns, mirrors and their products) are index permutations and therefore exact; all others are sampled.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["GridSteps", "act_on_plane", "is_on_grid", "move", "sample_bilinearly", "steps_on_grid"]

_Number = TypeVar("_Number", float, Tensor)


def is_on_grid(matrix: Tensor) -> bool:
    """Whether a 2×2 orthogonal matrix maps the pixel grid to itself (its entries are 0 and ±1)."""
    return bool(((matrix - matrix.round()).abs() < 1e-9).all())  # of cosines, too


def act_on_plane(x: Tensor, matrix: Tensor) -> Tensor:
    """Move the last two axes of `x` by an orthogonal matrix.

        (L_g f)(i) = f(g⁻¹ i)

    Args:
        x: [..., H, W], any leading axes; rows run downwards (along −y).
        matrix: [2, 2], float64, acting on (x, y).

    Returns:
        [..., H, W]; [..., W, H] when the matrix swaps the axes (odd quarter turns). On-grid matrices permute
        pixels and keep every value; others are sampled bilinearly with zeros outside the picture.

    Raises:
        ValueError: whole numbers that would have to be sampled; a matrix that is not orthogonal.
    """
    return move(x, matrix.tolist(), steps_on_grid(matrix))


class GridSteps(NamedTuple):
    """g = R(90° k) Mˢ: the mirror first (left–right flip), then k counter-clockwise quarter turns."""

    mirrored: bool
    quarter_turns: int


def steps_on_grid(matrix: Tensor) -> GridSteps | None:
    """What permutes the pixels as this matrix does; None for one that does not map the grid to itself.

    Raises:
        ValueError: a matrix that is not orthogonal.
    """
    one = torch.eye(2, dtype=matrix.dtype, device=matrix.device)
    if matrix.shape != one.shape or not torch.allclose(matrix @ matrix.mT, one, atol=1e-6):
        raise ValueError(f"pictures are moved by orthogonal matrices [2, 2], but got {matrix.tolist()}")
    if not is_on_grid(matrix):
        return None
    (a, b), (c, d) = matrix.round().int().tolist()
    mirrored = a * d - b * c < 0
    turns = {(1, 0, 0, 1): 0, (0, -1, 1, 0): 1, (-1, 0, 0, -1): 2, (0, 1, -1, 0): 3}
    return GridSteps(mirrored, turns[(-a, b, -c, d) if mirrored else (a, b, c, d)])


def move(x: Tensor, matrix: list[list[float]], steps: GridSteps | None) -> Tensor:
    """`act_on_plane` by a matrix in numbers, whose steps on the grid are known; nothing is copied to a GPU for it."""
    if steps is not None:
        return torch.rot90(x.flip(-1) if steps.mirrored else x, steps.quarter_turns, (-2, -1))
    if x.is_complex():
        return torch.complex(move(x.real, matrix, None), move(x.imag, matrix, None))
    if not x.is_floating_point():
        raise ValueError(f"what is sampled between its pixels must be of a floating dtype, but got {x.dtype}")
    planes = x.reshape(1, -1, *x.shape[-2:])
    (a, b), (c, d) = matrix
    entries = _inverse(a, b, c, d, planes.shape[-2:])
    inverse = torch.stack([torch.full((), entry, dtype=_exact_enough(x), device=x.device) for entry in entries])
    return _sampled(planes, inverse.view(1, 2, 3), planes.shape[-2:]).reshape(x.shape)


def sample_bilinearly(
    pictures: Tensor, matrices: Tensor, frame: tuple[int, int] | None = None, zoom: float = 1.0
) -> Tensor:
    """Move every picture about its centre by an orthogonal matrix of its own, in one bilinear step.

    Args:
        pictures: float [N, C, H, W].
        matrices: float64 [N, 2, 2], acting on (x, y).
        frame: sides (H′, W′) of what comes out; those of the pictures when None.
        zoom: how much of the frame's sides the picture's sides fill.

    Returns:
        [N, C, H′, W′], zeros from outside the picture.

    Raises:
        ValueError: what are no pictures, or another number of matrices.
    """
    if pictures.ndim != 4 or matrices.shape != (len(pictures), 2, 2):
        raise ValueError(
            "every picture of [N, C, H, W] is moved by a matrix of [N, 2, 2], but got the shapes "
            f"{list(pictures.shape)} and {list(matrices.shape)}"
        )
    frame = frame or (pictures.shape[-2], pictures.shape[-1])
    (a, b), (c, d) = (row.unbind(-1) for row in (matrices / zoom).unbind(-2))
    inverse = torch.stack(_inverse(a, b, c, d, frame), dim=-1).view(-1, 2, 3)
    inverse = inverse.to(_exact_enough(pictures)).to(pictures.device)  # float64 is not on every device
    return _sampled(pictures, inverse, frame)


def _inverse(a: _Number, b: _Number, c: _Number, d: _Number, frame: Sequence[int]) -> tuple[_Number, ...]:
    """Where points of the result come from, as affine_grid asks for it, of the matrix (a, b), (c, d).

    It counts −1…1 across the frame with y downwards: there, (x, y) comes from g⁻¹(x, y) = (a·x − c·y, −b·x + d·y); for
    H ≠ W the axes are rescaled to pixels before, and back after.
    """
    rows, columns = frame
    return a, -c * rows / columns, 0 * a, -b * columns / rows, d, 0 * a


def _exact_enough(x: Tensor) -> torch.dtype:
    """Halves are too coarse to say where."""
    return torch.promote_types(x.dtype, torch.float32) if x.is_floating_point() else x.dtype


def _sampled(pictures: Tensor, inverse: Tensor, frame: Sequence[int]) -> Tensor:
    moved = []
    for part, places in zip(pictures.to(inverse.dtype).split(4096), inverse.split(4096), strict=True):
        grid = F.affine_grid(places, [len(part), 1, *frame], align_corners=False)  # larger than the pictures
        moved.append(F.grid_sample(part, grid, mode="bilinear", padding_mode="zeros", align_corners=False))
    return torch.cat(moved).to(pictures.dtype)
