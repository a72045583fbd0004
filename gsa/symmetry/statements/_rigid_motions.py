"""Attention of points in space that is agnostic to how they are turned and shifted: of an input molecule."""

from collections.abc import Callable

import torch
from torch import Tensor

from gsa.symmetry._norm import relative_error

__all__ = ["rigid_motion", "rigid_motion_errors"]

Points = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def rigid_motion(is_mirrored: bool = False) -> tuple[Tensor, Tensor]:
    """A rotation of space at random, [3, 3], and a shift, [3]; with `is_mirrored` a rotation and a mirror."""
    turned, _ = torch.linalg.qr(torch.randn(3, 3))
    turned = turned * torch.linalg.det(turned).sign()
    return (-turned if is_mirrored else turned), torch.randn(3)


def rigid_motion_errors(
    network: Points, features: Tensor, positions: Tensor, rotation: Tensor, shift: Tensor
) -> dict[str, float]:
    """Whether what a network says of points is the same when all are turned and shifted, and turned where it points.

        s(f, Rx + t) = s(f, x),   v(f, Rx + t) = R v(f, x)

    It is, exactly, where positions enter by their distances |x_i − x_j| and vectors are sums of x_j − x_i. Distances do
    not know a molecule from its mirror image, so such a network is equivariant to E(3), and not to SE(3) alone.
    Source: "Visualizing equivariances in transformer neural networks" ("exploiting other symmetries"), after Fuchs et
    al. 2020, whose attention of higher types is not here.

    Args:
        network: features [N, C] and positions [N, 3] → scalars [N, C′] and vectors [N, 3].
        features: f.
        positions: x, in any unit of length.
        rotation: R [3, 3], orthogonal, as `rigid_motion` draws it.
        shift: t [3], in the same unit.

    Returns:
        {"scalars", "vectors": relative error}.

    Raises:
        ValueError: a matrix that keeps no distances.
    """
    if relative_error(rotation @ rotation.T, torch.eye(3).to(rotation)) > 1e-5:
        raise ValueError(f"the rotation must be an orthogonal matrix, RRᵀ = 1, but got {rotation.tolist()}")
    with torch.no_grad():
        scalars, vectors = network(features, positions)
        of_moved, moved = network(features, positions @ rotation.T + shift)
    return {"scalars": relative_error(of_moved, scalars), "vectors": relative_error(moved, vectors @ rotation.T)}
