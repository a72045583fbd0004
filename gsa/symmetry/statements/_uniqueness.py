"""No two elements of the group share an encoding."""

import torch
from torch import Tensor

from gsa.encodings import Encoding, Neighbourhood
from gsa.symmetry.statements._turned import check_kind, encoded_ones

__all__ = ["closest_encodings", "encoding_vectors"]


def encoding_vectors(encoding: Encoding, neighbourhood: Neighbourhood, side: int = 1) -> Tensor:
    """ρ(u, m) = ρ_x(u) + ρ_H(m) of every relative position u and relative pose m, as the identity's pose sees them.

    Args:
        encoding: of a group layer, one that adds to the keys (functional, fourier, table, quadratic, constant).
        neighbourhood: the relative positions.
        side: of the map, which only global attention needs.

    Returns:
        [positions, |H|, d].

    Raises:
        ValueError: an absolute or rotary encoding, or one of a lifting layer.
    """
    check_kind(encoding, "absolute", "rotary")
    if encoding.lifting:
        raise ValueError("expected an encoding of a group layer, but got one of a lifting layer, without key poses")
    encoded = encoded_ones(encoding, neighbourhood, side)
    window = neighbourhood.mask(side, side, encoded.spatial.device)
    return encoded.spatial[0][window][:, None] + encoded.pose[0]


def closest_encodings(encoding: Encoding, neighbourhood: Neighbourhood, side: int = 1) -> float:
    """How near the two elements of the group come whose encodings are the most alike.

        min ‖ρ(g) − ρ(g̃)‖ / sqrt(mean_g ‖ρ(g)‖²)   over g ≠ g̃,   g = (u, m)

    Were it zero, no layer with this encoding could tell the two elements apart: "for maximum expressiveness, the
    positional encoding must be defined on the group itself" (Romero & Cordonnier 2021).

    Args:
        encoding, neighbourhood, side: as in `encoding_vectors`.

    Returns:
        The distance, relative to the typical length; 0 where all encodings vanish.

    Raises:
        ValueError: as of `encoding_vectors`; a single element.
    """
    vectors = encoding_vectors(encoding, neighbourhood, side).flatten(0, 1)
    if len(vectors) < 2:
        raise ValueError("expected two elements (offset, pose) or more, but got a single one")
    length = vectors.square().sum(-1).mean().sqrt()
    return (torch.pdist(vectors).min() / length).item() if length else 0.0
