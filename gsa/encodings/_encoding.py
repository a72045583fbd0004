"""What every positional encoding is: the one geometric part of self-attention."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from gsa import groups
from gsa._remembered import remember_group
from gsa._tables import WithTables
from gsa.encodings._neighbourhood import Neighbourhood
from gsa.groups import Group

__all__ = ["FORMS", "AdditiveEncoding", "Encoded", "Encoding", "without_autocast"]

FORMS = ("lifting", "regular", "summed")


def without_autocast(device: torch.device) -> AbstractContextManager:
    """For sums that cancel."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)


class Encoded(NamedTuple):
    """The tensors that an encoding gives `gsa.ops.attend`; P·heads′ = |H|·heads.

    Attributes:
        query, key, value: [B, heads′, poses, H, W, d].
        spatial: ρ_x(h⁻¹u), [P, U, V, d].
        pose: ρ_H, [query poses, key poses, d].
    """

    query: Tensor
    key: Tensor
    value: Tensor
    spatial: Tensor
    pose: Tensor


class Encoding(WithTables):
    """Turns queries, keys and values into what the attention op needs, for every output pose.

    The base class contributes nothing: every key looks alike wherever it stands. A kind of encoding declares what it
    is in class attributes, and says with `check_fits` which layers it serves.

    Args:
        group: acts on the offsets; or its name.
        head_dim: d, channels of a head.
        lifting: whether it is made for a lifting layer, whose keys have no poses, or for a group layer; None serves
            both.

    Attributes:
        name: what it is called in `encoding=`.
        forms: of attention that the kind serves, of "lifting", "regular" and "summed".
        limit: why not the others, for the message that refuses them.
        keeps: the symmetries that survive, of "permutations" (of all pixels, in global attention),
            "translations" and "poses" (all of H).
        has_products: whether scores can be written as plain products of queries and keys, see `products`.
        makes_poses_heads: whether `forward` puts output poses in front of the heads.
        places_heads: whether heads have preferences of their own, which need no content: see `position_scores`.
        parameter_kind: what its parameters are to an optimizer, "rest" or "positions", which should not decay.
        group, head_dim, lifting: as given.
        position_dim: channels of a head that carry position in place of content.
    """

    name: str = "custom"
    forms: tuple[str, ...] = FORMS
    limit: str = ""
    keeps: frozenset[str] = frozenset({"permutations", "translations", "poses"})
    has_products: bool = False
    makes_poses_heads: bool = False
    places_heads: bool = False
    parameter_kind: str = "rest"
    position_dim: int = 0
    relative_pose: Tensor
    inverse_matrices: Tensor
    __call__: Callable[..., Encoded]

    def __init__(self, group: Group | str, head_dim: int, lifting: bool | None = None) -> None:
        super().__init__()
        group = groups.group(group)
        self.group, self.head_dim, self.lifting = group, head_dim, lifting
        remember_group(self)
        self.keep_table("relative_pose", group.product[group.inverse])  # h⁻¹h̃
        self.keep_table("inverse_matrices", group.matrices[group.inverse])

    @property
    def key_dim(self) -> int:
        """Channels of the queries and keys that it is given: those for content."""
        return max(self.head_dim - self.position_dim, 0)

    @classmethod
    def of_layer(cls, group: Group, head_dim: int, neighbourhood: Neighbourhood, form: str, num_heads: int = 1) -> Self:
        """The encoding of a layer that names its kind."""
        return cls(group, head_dim)

    def check_fits(
        self, group: Group, head_dim: int, neighbourhood: Neighbourhood, form: str, num_heads: int = 1
    ) -> None:
        """Refuse a layer that this encoding was not made for.

        Raises:
            ValueError: another group or head size, a form that the kind does not serve, key poses where there should
                be none, or none where there should be.
        """
        if self.group != group or self.head_dim != head_dim:
            raise ValueError(
                f"the encoding must be made for this layer's group and head_dim ({group.name}, {head_dim}), "
                f"but was made for ({self.group.name}, {self.head_dim})"
            )
        if form not in self.forms:
            served = [f"form={other!r}" for other in self.forms if other != "lifting"]
            raise ValueError(
                f"a {self.name} encoding {self.limit}cannot serve form={form!r}; "
                f"use {', or '.join([*served, 'another encoding'])}"
            )
        if self.lifting is not None and self.lifting != (form == "lifting"):
            layer = "a group layer has key poses" if self.lifting else "a lifting layer has no key poses"
            raise ValueError(
                f"{layer}: its encoding must be made with lifting={not self.lifting}, but has lifting={self.lifting}"
            )

    def embed(self, features: Tensor) -> Tensor:
        """Add position to features before they are projected; only absolute encodings do."""
        return features

    def forward(self, query: Tensor, key: Tensor, value: Tensor, neighbourhood: Neighbourhood) -> Encoded:
        """What the op is given.

        Args:
            query, key, value: [B, heads, poses, H, W, d]; one pose in a lifting layer, |H| in a group layer; query and
                key with `key_dim` channels; of the last heads of the layer where not of all.
            neighbourhood: the relative positions to encode.
        """
        height, width = query.shape[-3:-1]
        spatial = query.new_zeros(self.group.order, *neighbourhood.extent(height, width), self.head_dim)
        return Encoded(query, key, value, spatial, query.new_zeros(query.shape[2], key.shape[2], self.head_dim))

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

    def position_scores(self, neighbourhood: Neighbourhood, height: int, width: int) -> Tensor:
        """What every head adds to the scores of all queries: [heads, |H|, key poses, U, V]; only if `places_heads`."""
        raise NotImplementedError

    def start_at_centre(self) -> None:
        """Forget where heads start: all at the centre; only if `places_heads`."""
        raise NotImplementedError

    def acted(self, offsets: Tensor) -> Tensor:
        """h⁻¹u for every pose h and every offset u: [..., 2] -> [|H|, ..., 2]."""
        turned = offsets.reshape(-1, 2) @ self.inverse_matrices.to(offsets).mT
        return turned.view(-1, *offsets.shape)

    def _phases(self, neighbourhood: Neighbourhood, height: int, width: int, frequencies: Tensor) -> Tensor:
        """ω·h⁻¹i for every pixel i, [f, 2] -> [|H|, H, W, f]; float32 at least, as halves lose turns off the centre."""
        precise = frequencies.to(torch.promote_types(frequencies.dtype, torch.float32))
        with without_autocast(frequencies.device):
            return self.acted(neighbourhood.positions(height, width, like=precise)) @ precise.T

    def extra_repr(self) -> str:
        return f"{self.group.name}, head_dim={self.head_dim}"


class AdditiveEncoding(Encoding):
    """ρ(h⁻¹(j − i), h⁻¹h̃) = ρ_x(h⁻¹(j − i)) + ρ_H(h⁻¹h̃), added to the keys.

    Subclasses define `spatial`, the values of ρ_x. ρ_H is a learned vector for each relative pose.

    Args:
        group, head_dim: as for any encoding.
        lifting: whether it is made for a lifting layer; then there is no ρ_H.
        pose_dim: how many of the last of the d channels ρ_H fills; all when None.
    """

    keeps = frozenset({"translations", "poses"})

    def __init__(self, group: Group | str, head_dim: int, lifting: bool = False, pose_dim: int | None = None) -> None:
        super().__init__(group, head_dim, lifting)
        pose_dim = head_dim if pose_dim is None else pose_dim
        self.pose_vectors = None if lifting else nn.Parameter(torch.empty(self.group.order, pose_dim))
        AdditiveEncoding.reset_parameters(self)  # a kind draws what it has besides when it has made it

    def reset_parameters(self) -> None:
        """Draw the parameters anew, as a new encoding does."""
        if self.pose_vectors is not None:
            nn.init.normal_(self.pose_vectors)

    @classmethod
    def of_layer(cls, group: Group, head_dim: int, neighbourhood: Neighbourhood, form: str, num_heads: int = 1) -> Self:
        return cls(group, head_dim, lifting=form == "lifting")

    def spatial(self, offsets: Tensor) -> Tensor:
        """ρ_x(h⁻¹u) at normalised offsets u: [U, V, 2] -> [|H|, U, V, d]."""
        raise NotImplementedError

    def pose(self, query_poses: int, key_poses: int, like: Tensor) -> Tensor:
        """ρ_H(ĥ⁻¹h̃): [query poses, key poses, d]."""
        if self.pose_vectors is None:
            return like.new_zeros(query_poses, key_poses, self.head_dim)
        return self._padded(self.pose_vectors[self.relative_pose])

    def _padded(self, vectors: Tensor) -> Tensor:
        return nn.functional.pad(vectors, (self.head_dim - vectors.shape[-1], 0))

    def forward(self, query: Tensor, key: Tensor, value: Tensor, neighbourhood: Neighbourhood) -> Encoded:
        height, width = query.shape[-3:-1]
        spatial = self.spatial(neighbourhood.offsets(height, width, like=self.inverse_matrices.to(query.device)))
        return Encoded(query, key, value, spatial, self.pose(query.shape[2], key.shape[2], spatial))
