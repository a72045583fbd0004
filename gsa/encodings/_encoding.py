"""What every positional encoding is: the one geometric part of self-attention."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gsa.encodings._neighbourhood import Neighbourhood
from gsa.groups import Group

__all__ = ["AdditiveEncoding", "Encoding"]


class Encoding(nn.Module):
    """Turns queries, keys and values into what the attention op needs, for every output pose.

    Attributes:
        keeps: the symmetries that survive, of "permutations" (of all pixels, in global attention),
            "translations" and "poses" (all of H).
        has_products: whether scores can be written as plain products of queries and keys, see `products`.
        group, head_dim: as given.

    The base class contributes nothing: every key looks alike wherever it stands.
    """

    keeps: frozenset[str] = frozenset({"permutations", "translations", "poses"})
    has_products = False

    def __init__(self, group: Group, head_dim: int) -> None:
        super().__init__()
        self.group = group
        self.head_dim = head_dim
        relative = group.product[group.inverse]  # h⁻¹h̃
        self.register_buffer("relative_pose", relative, persistent=False)
        inverse_matrices = group.matrices[group.inverse].to(torch.get_default_dtype())
        self.register_buffer("inverse_matrices", inverse_matrices, persistent=False)

    def embed(self, features: Tensor) -> Tensor:
        """Add position to features before they are projected; only absolute encodings do."""
        return features

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, neighbourhood: Neighbourhood
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The five tensors of `gsa.ops.attend`.

        Args:
            query, key, value: [B, heads, poses, H, W, d]; one pose in a lifting layer, |H| in a group layer.
            neighbourhood: the relative positions to encode.

        Returns:
            query, key, value, spatial [P, U, V, d], pose [query poses, key poses, d]; P·heads′ = |H|·heads,
            with output poses in front of the heads where the encoding turns queries and keys itself.
        """
        height, width = query.shape[-3:-1]
        spatial = query.new_zeros(self.group.order, *neighbourhood.extent(height, width), self.head_dim)
        return query, key, value, spatial, query.new_zeros(query.shape[2], key.shape[2], self.head_dim)

    def products(
        self, query: Tensor, key: Tensor, value: Tensor, neighbourhood: Neighbourhood
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys whose plain products are the scores; only where `has_products`.

        Args:
            query, key, value: as in `forward`, in a lifting layer or in the regular form.

        Returns:
            query [B, |H|·heads, 1, H, W, d′], key [B, |H|·heads, key poses, H, W, d′] and value, with output poses in
            front of the heads; scores are still to be divided by √d.
        """
        raise NotImplementedError

    def _acted(self, offsets: Tensor) -> Tensor:
        """h⁻¹u for every pose h and every offset u: [..., 2] -> [|H|, ..., 2]."""
        return torch.einsum("pij,...j->p...i", self.inverse_matrices.to(offsets.dtype), offsets)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True):
        """Every cast or move rebuilds the group's tables, so that no precision is lost for good."""
        super()._apply(fn, recurse)
        group = self.group
        self.relative_pose = group.product[group.inverse].to(self.relative_pose)
        self.inverse_matrices = group.matrices[group.inverse].to(self.inverse_matrices)
        return self

    def extra_repr(self) -> str:
        return f"{self.group.name}, head_dim={self.head_dim}"


class AdditiveEncoding(Encoding):
    """ρ(h⁻¹(j − i), h⁻¹h̃) = ρ_x(h⁻¹(j − i)) + ρ_H(h⁻¹h̃), added to the keys.

    Subclasses define `spatial`, the values of ρ_x. ρ_H is a learned vector for each relative pose.

    Args:
        pose_dim: how many of the last of the d channels ρ_H fills; 0 in a lifting layer, which has no key poses.
    """

    keeps = frozenset({"translations", "poses"})

    def __init__(self, group: Group, head_dim: int, pose_dim: int) -> None:
        super().__init__(group, head_dim)
        self.pose_vectors = nn.Parameter(torch.randn(group.order, pose_dim)) if pose_dim else None

    def spatial(self, offsets: Tensor) -> Tensor:
        """ρ_x(h⁻¹u) at normalised offsets u: [U, V, 2] -> [|H|, U, V, d]."""
        raise NotImplementedError

    def pose(self, query_poses: int, key_poses: int, like: Tensor) -> Tensor:
        """ρ_H(ĥ⁻¹h̃): [query poses, key poses, d]."""
        if self.pose_vectors is None or key_poses != self.group.order:
            return like.new_zeros(query_poses, key_poses, self.head_dim)
        vectors = self.pose_vectors[self.relative_pose]
        return nn.functional.pad(vectors, (self.head_dim - vectors.shape[-1], 0))

    def forward(self, query, key, value, neighbourhood):
        offsets = neighbourhood.offsets(*query.shape[-3:-1], like=self.inverse_matrices)
        spatial = self.spatial(offsets)
        return query, key, value, spatial, self.pose(query.shape[2], key.shape[2], spatial)
