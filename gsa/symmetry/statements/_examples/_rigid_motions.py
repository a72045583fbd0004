"""Points in space that are turned and shifted."""

import torch
from torch import Tensor, nn

from gsa.symmetry.statements._examples._example import Figures, example
from gsa.symmetry.statements._examples._networks import spread
from gsa.symmetry.statements._examples._sources import WORDS
from gsa.symmetry.statements._rigid_motions import rigid_motion, rigid_motion_errors

__all__ = ["EXAMPLES"]


@example(WORDS, rigid_motion, rigid_motion_errors)
def rigid_motions() -> Figures:
    """Attention of points that sees their distances alone is agnostic to how a molecule is turned and shifted."""
    points, (rotation, shift) = (torch.randn(7, 8), torch.randn(7, 3)), rigid_motion()
    errors = rigid_motion_errors(_Points("distances"), *points, rotation, shift)
    mirrored = rigid_motion_errors(_Points("distances"), *points, *rigid_motion(is_mirrored=True))
    turned = rigid_motion_errors(_Points("offsets"), *points, rotation, torch.zeros(3))
    shifted = rigid_motion_errors(_Points("positions"), *points, torch.eye(3), shift)
    return Figures(
        errors | {"vectors, mirrored": mirrored["vectors"]},
        {"with offsets, turned": turned["scalars"], "with positions, shifted": shifted["scalars"]},
    )


class _Points(nn.Module):
    """Self-attention of points with 8 features, whose vectors point to other points.

    Args:
        sees: "distances", "offsets" or "positions", which are encoded.
    """

    def __init__(self, sees: str) -> None:
        super().__init__()
        self.sees, self.maps = sees, nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.encoding = nn.Sequential(nn.Linear(1 if sees == "distances" else 3, 16), nn.Tanh(), nn.Linear(16, 8))
        spread(self)

    def forward(self, features: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        offsets = positions - positions[:, None]
        seen = {"distances": offsets.norm(dim=-1, keepdim=True), "offsets": offsets}
        encoded = self.encoding(seen.get(self.sees, positions.expand_as(offsets)))
        query, key, value = (layer(features) for layer in self.maps)
        attention = (query[:, None] * (key + encoded)).sum(-1).softmax(-1)
        return attention @ value, (attention[..., None] * offsets).sum(1)


EXAMPLES = (rigid_motions,)
