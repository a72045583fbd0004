"""Where the published network differs from ours, in one place."""

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from gsa.encodings import AdditiveEncoding, Encoded, FunctionalEncoding
from gsa.groups import Group
from gsa.nn import (
    AttentionBlock,
    GroupSelfAttention,
    LiftingSelfAttention,
    PointwiseLinear,
    SpatialPool,
)
from gsa.nn import norm as make_norm

__all__ = ["PublishedBlock", "PublishedGroupTerm", "as_published", "warn_of_group_term"]

_EPS = 1e-12


class PublishedBlock(AttentionBlock):
    """The residual block with the mlp of the public code: norm ∘ linear(C/2 → C) ∘ swish ∘ norm ∘ linear(C → C/2)."""

    def make_mlp(self, norm: str, channels: int) -> nn.Sequential:
        hidden = max(channels // 2, 1)
        return nn.Sequential(
            PointwiseLinear(channels, hidden),
            make_norm(norm, hidden),
            nn.SiLU(),
            PointwiseLinear(hidden, channels),
            make_norm(norm, channels),
        )


def as_published(network: nn.Module) -> None:
    """Give a network the numbers of the public code, as far as they are not arguments of its parts.

    Norms divide by √(σ² + 1e-12), and scores by √C_in in place of √d; the encoding's first biases start at 0, where
    LayerNorm leaves of a coordinate little more than its sign; every pool is 2×2 at stride 2, exact or not.
    """
    for module in network.modules():
        if isinstance(module, nn.GroupNorm | nn.LayerNorm):
            module.eps = _EPS
        elif isinstance(module, LiftingSelfAttention | GroupSelfAttention):
            module.query_scale = (module.head_dim / module.in_channels) ** 0.5
        elif isinstance(module, SpatialPool):
            module.kernel = module.stride = 2
        elif isinstance(module, FunctionalEncoding):
            module.start_without_biases()


class PublishedGroupTerm(GroupSelfAttention):
    """The summed form with the group term of the public code, ρ_H(ĥ⁻¹h̃h), which is not equivariant.

    It calls the op once for each output pose h.

    Raises:
        ValueError: another form than "summed", or an encoding without ρ_H.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        if self.form != "summed" or not isinstance(self.encoding, AdditiveEncoding):
            raise ValueError(
                "the published pose index needs form='summed' and an encoding that adds a vector for each relative "
                f"pose, such as 'functional', but got form={self.form!r} and {self.encoding.name!r}"
            )

    def attend(self, encoded: Encoded, window: Tensor, dropout: float = 0.0, crop: int = 0) -> Tensor:
        attend = super().attend
        return torch.cat([attend(of_pose, window, dropout, crop) for of_pose in self._by_pose(encoded)], dim=2)

    def weigh(self, encoded: Encoded, window: Tensor) -> Tensor:
        weights = super().weigh
        return torch.cat([weights(of_pose, window) for of_pose in self._by_pose(encoded)], dim=2)

    def _by_pose(self, encoded: Encoded) -> Iterator[Encoded]:
        """What each output pose h asks with: its own table of poses."""
        for h in range(self.group.order):
            yield encoded._replace(spatial=encoded.spatial[h : h + 1], pose=self.pose_seen_by(h))

    def pose_seen_by(self, h: int) -> Tensor:
        """ρ_H(ĥ⁻¹h̃h), zero in the channels of ρ_x: [query poses, key poses, d]."""
        encoding = self.encoding
        assert isinstance(encoding, AdditiveEncoding) and encoding.pose_vectors is not None
        relative = encoding.relative_pose  # ĥ⁻¹h̃, so that its first column holds the inverses; where the features are
        times_h = relative[:, h][relative[:, 0]]
        return encoding._padded(encoding.pose_vectors[times_h[relative]])


def warn_of_group_term(group: Group) -> None:
    """Say that a network with `PublishedGroupTerm` is not equivariant."""
    warnings.warn(
        f"with pose_index='published' this network is not equivariant to {group.name}: a quarter turn of a digit "
        "changes the logits of rotmnist_r4_sa by 0.2 to 0.6 % as it starts (docs/published.md)",
        stacklevel=3,
    )
