"""Attention of points that knows their distances alone is agnostic to how they are turned and shifted."""

import pytest
import torch
from torch import nn

import gsa
from gsa.symmetry import statements

pytestmark = pytest.mark.usefixtures("float64")


class Points(nn.Module):
    """Self-attention of N points, with an encoding of distances, offsets or positions; vectors point to points."""

    def __init__(self, of, channels=8):
        super().__init__()
        self.of = of
        self.query, self.key, self.value = (nn.Linear(channels, channels, bias=False) for _ in range(3))
        self.encoding = nn.Sequential(nn.Linear(1 if of == "distances" else 3, 16), nn.SiLU(), nn.Linear(16, channels))
        self.pull = nn.Linear(channels, 1)

    def forward(self, features, positions):
        offsets = positions - positions[:, None]  # x_j − x_i
        seen = {"distances": offsets.norm(dim=-1, keepdim=True), "offsets": offsets}.get(
            self.of, positions.expand_as(offsets)
        )
        keys, values = self.key(features) + self.encoding(seen), self.value(features)
        attention = (self.query(features)[:, None] * keys).sum(-1).softmax(-1)
        return attention @ values, (attention[..., None] * self.pull(values) * offsets).sum(1)


def found(of, rotation, shift):
    return statements.rigid_motion_errors(Points(of), torch.randn(7, 8), torch.randn(7, 3), rotation, shift)


@pytest.mark.parametrize("is_mirrored", [False, True])  # distances do not know a molecule from its mirror image
def test_distances_forget_how_points_are_turned_and_shifted(is_mirrored):
    rotation, shift = statements.rigid_motion(is_mirrored)
    assert torch.linalg.det(rotation).round() == (-1 if is_mirrored else 1)
    assert max(found("distances", rotation, shift).values()) < 1e-13


def test_planted_offsets_know_turns_and_positions_know_shifts_too():
    rotation, shift = statements.rigid_motion()
    still, stays = torch.eye(3), torch.zeros(3)
    assert max(found("offsets", still, shift).values()) < 1e-13
    assert min(found("offsets", rotation, stays).values()) > 1e-3
    assert min(found("positions", still, shift).values()) > 1e-3


def test_points_in_another_order_are_the_same():
    network, features, positions, order = Points("distances"), torch.randn(7, 8), torch.randn(7, 3), torch.randperm(7)
    for moved, plain in zip(network(features[order], positions[order]), network(features, positions), strict=True):
        assert gsa.symmetry.relative_error(moved, plain[order]) < 1e-13


def test_what_keeps_no_distances_is_refused():
    with pytest.raises(ValueError, match="must be an orthogonal matrix"):
        found("distances", 2 * torch.eye(3), torch.zeros(3))
