"""Heads that start at offsets and poses: a Gaussian around a place, a preference among poses."""

import math
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gsa._hooked import refuse_made
from gsa.encodings._encoding import Encoded, Encoding, without_autocast
from gsa.encodings._filled import fill
from gsa.encodings._neighbourhood import Neighbourhood
from gsa.groups import Group

__all__ = ["QuadraticEncoding"]


class QuadraticEncoding(Encoding):
    """Each head e has an offset Δ, a sharpness α and a preference c among poses, learned, and the same for all queries.

        score_e(i, h; j, h̃) = q(i, h)·k(j, h̃) / √d + α_e (|Δ_e|² − |u − Δ_e|²) + c_e·p(h⁻¹h̃),   u = h⁻¹(j − i) in pixels

    p is (cos θ, sin θ) of the relative pose's angle θ (cos θ alone where it is 0 or a half turn), and ±1 for its sheet
    in groups with a mirror. Without content a head is a Gaussian around Δ times a von Mises weight of the poses, so the
    layer is a soft convolution on the group; as α, |c| → ∞ it is a convolution. Heads start at different cells of the
    window and at different poses: the layer starts as a random group convolution. It is a function of the acted
    offset, so nothing is interpolated for any group, and α = softplus(a) > 0 keeps the place that a head looks at where
    its offset says.

    Source: the quadratic encoding of Cordonnier, Loukas & Jaggi 2020, acted upon by the group, with poses.

    Args:
        group: acts on the offsets; or its name.
        head_dim: d; queries and keys have `key_dim` channels of it for content, the others carry the position.
        num_heads: E.
        neighbourhood: where heads start: at its cells, the nearest first.
        lifting: whether it is made for a lifting layer, whose keys have no poses.
        start_sharpness: α at the start, in 1/pixels².
        start_preference: c at the start is so many times p(h), which is (cos θ, sin θ), ±1 for a mirror, or both.

    Attributes:
        offset: Δ, [E, 2], in pixels, x right and y up.
        raw_sharpness: a, [E].
        preference: c, [E, n]; a buffer where there are no poses to prefer.

    Raises:
        ValueError: no head, or a sharpness outside (0, 100].
    """

    name = "quadratic"
    keeps = frozenset({"translations", "poses"})
    places_heads = True
    parameter_kind = "positions"
    pose_vectors: Tensor
    places: Tensor
    preference: Tensor

    def __init__(
        self,
        group: Group | str,
        head_dim: int,
        num_heads: int,
        neighbourhood: Neighbourhood,
        lifting: bool = False,
        start_sharpness: float = 2.0,
        start_preference: float = 2.0,
    ) -> None:
        super().__init__(group, head_dim, lifting)
        group = self.group
        if num_heads < 1 or not 0 < start_sharpness <= 100:
            raise ValueError(
                "a quadratic encoding needs at least one head and a sharpness in (0, 100], "
                f"but got {num_heads} and {start_sharpness}"
            )
        self.num_heads = num_heads
        vectors = _pose_vectors(group)[:, : 0 if lifting else None]
        self.keep_table("pose_vectors", vectors)
        self.position_dim = 3 + vectors.shape[1]
        self.neighbourhood = neighbourhood
        if neighbourhood.size:
            pixels = neighbourhood.pixels(1, 1, like=group.matrices)
            acted = torch.einsum("hij, uvj -> huvi", group.matrices[group.inverse], pixels)
            self.keep_table("places", _of_offsets(acted))
        self.start = (_cells(neighbourhood, num_heads), start_sharpness, start_preference)
        self.offset = nn.Parameter(torch.empty(num_heads, 2))
        self.raw_sharpness = nn.Parameter(torch.empty(num_heads))
        preference = torch.empty(num_heads, vectors.shape[1])
        if preference.numel():
            self.preference = nn.Parameter(preference)
        else:  # no parameter of no numbers, which some optimizers cannot take
            self.register_buffer("preference", preference)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Put the heads where they start: at their cells, one after the other, and at the poses."""
        cells, sharpness, preference = self.start
        heads = torch.arange(self.num_heads, device="cpu")  # as the cells are
        poses = (heads + heads // len(cells)) % self.group.order
        fill(self.offset, cells[heads % len(cells)])
        self.raw_sharpness.fill_(math.log(math.expm1(sharpness)))
        fill(self.preference, preference * self.pose_vectors[poses])

    def start_at_centre(self) -> None:
        """Put all heads at the centre, wide and without a preference, as attention starts elsewhere: a comparison."""
        self.start = (_cells(Neighbourhood(1), 1), 0.1, 0.0)
        self.reset_parameters()

    def start_at(self, cells: Tensor) -> None:
        """Put the heads at other places, of which `reset_parameters` knows from then on.

        Args:
            cells: [n, 2], in pixels, x right and y up, on the CPU; heads take them one after the other.
        """
        self.start = (cells, *self.start[1:])
        self.reset_parameters()

    @classmethod
    def of_layer(cls, group: Group, head_dim: int, neighbourhood: Neighbourhood, form: str, num_heads: int = 1) -> Self:
        return cls(group, head_dim, num_heads, neighbourhood, lifting=form == "lifting")

    def check_fits(
        self, group: Group, head_dim: int, neighbourhood: Neighbourhood, form: str, num_heads: int = 1
    ) -> None:
        super().check_fits(group, head_dim, neighbourhood, form, num_heads)
        if self.num_heads != num_heads:
            raise ValueError(
                f"a quadratic encoding has a place for every head: it must be made for this layer's {num_heads} heads, "
                f"but was made for {self.num_heads}"
            )

    @property
    def sharpness(self) -> Tensor:
        """α = softplus(a), [E]."""
        return F.softplus(self.raw_sharpness)

    def position_scores(
        self, neighbourhood: Neighbourhood, height: int, width: int, longer: tuple[int, int] = (0, 0)
    ) -> Tensor:
        """As of any encoding; of windows so many rows and columns longer than the one where heads start.

        That stands at their beginning (left and above) in the pose of the identity, and in others at the end that this
        is turned to: heads are moved by s_h = (columns/2, rows/2) ⊙ h(−1, 1).
        """
        refuse_made(self, "offset", "raw_sharpness", "preference")
        precise = torch.promote_types(self.offset.dtype, torch.float32)
        with without_autocast(self.offset.device):
            wanted = self._wanted().to(precise)
            places, poses = self._places(neighbourhood, height, width), self._poses(self.group.order)
            spatial = F.linear(wanted[:, :3], places.to(precise).flatten(0, 2)).view(-1, *places.shape[:3])
            pose = F.linear(wanted[:, 3:], poses.to(precise).flatten(0, 1)).view(-1, *poses.shape[:2])
            if any(longer):  # −α|u − s|², of which 2α u·s depends on both
                inverse = self.inverse_matrices.to(wanted)
                corner = inverse[:, 1] - inverse[:, 0]  # h(−1, 1)
                moved = torch.stack((corner[:, 0] * (longer[1] / 2), corner[:, 1] * (longer[0] / 2)), dim=1)
                along = torch.einsum("hi, uvi -> huv", moved, neighbourhood.pixels(height, width, like=wanted))
                spatial = spatial + 2 * wanted[:, 2, None, None, None] * along
        return spatial[:, :, None] + pose[..., None, None]

    def forward(self, query: Tensor, key: Tensor, value: Tensor, neighbourhood: Neighbourhood) -> Encoded:
        """Query and key of `key_dim` channels get those of position: q·k + √d b·ρ over √d."""
        places = self._places(neighbourhood, *query.shape[-3:-1])
        poses = self._poses(query.shape[2])
        wanted = (self._wanted()[-query.shape[1] :] * (self.key_dim + self.position_dim) ** 0.5).to(query.dtype)
        wanted = wanted[:, None, None, None].expand(*query.shape[:-1], -1)
        return Encoded(
            torch.cat((query, wanted), dim=-1),
            F.pad(key, (0, wanted.shape[-1])),
            value,
            F.pad(places, (self.key_dim, poses.shape[-1])),
            F.pad(poses, (self.key_dim + 3, 0)),
        )

    def _wanted(self) -> Tensor:
        """b = (αΔ, α, c), which asks for a place and a pose: [E, 3 + n]."""
        sharpness = self.sharpness[:, None]
        return torch.cat((sharpness * self.offset, sharpness, self.preference), dim=1)

    def _places(self, neighbourhood: Neighbourhood, height: int, width: int) -> Tensor:
        """ρ_x = (2u, −|u|²) at u = h⁻¹(j − i) in pixels: [|H|, U, V, 3]."""
        if neighbourhood.size and neighbourhood == self.neighbourhood:
            return self.places.to(self.offset.device)
        like = self.inverse_matrices.to(self.offset.device)
        return _of_offsets(self.acted(neighbourhood.pixels(height, width, like)))

    def _poses(self, query_poses: int) -> Tensor:
        """ρ_H = p(h⁻¹h̃): [query poses, key poses, n]; of one key pose in a lifting layer, where n = 0."""
        vectors = self.pose_vectors.to(self.offset.device)
        return vectors.new_zeros(query_poses, 1, 0) if self.lifting else vectors[self.relative_pose]


def _of_offsets(offsets: Tensor) -> Tensor:
    """(2u, −|u|²): [..., 2] → [..., 3]."""
    return torch.cat((2 * offsets, -offsets.square().sum(-1, keepdim=True)), dim=-1)


def _pose_vectors(group: Group) -> Tensor:
    """(cos θ, sin θ) of every element's angle where there are rotations, ±1 where there is a mirror: [|H|, n]."""
    angles = torch.stack((group.matrices[:, 1, 1], -group.matrices[:, 0, 1]), dim=1)  # R(θ)Mˢ, M = diag(−1, 1)
    sheets = group.matrices.det().round()[:, None]
    turns = angles[:, : min(group.rotations - 1, 2)]  # a half turn has no sine
    parts = [turns] + ([sheets] if group.mirrored else [])
    return torch.cat(parts, dim=1)


def _cells(neighbourhood: Neighbourhood, count: int) -> Tensor:
    """At most `count` cells of the window, the nearest to its centre first: [·, 2]."""
    side = neighbourhood.size or 2 * math.isqrt(count) + 1
    window = neighbourhood if neighbourhood.size else Neighbourhood(side, neighbourhood.window)
    like = torch.empty(0, dtype=torch.float64, device="cpu")  # whatever device the layer is made on
    cells = window.pixels(side, side, like)[window.mask(side, side, like.device)].tolist()
    return torch.tensor(sorted(cells, key=lambda cell: (math.hypot(*cell), math.atan2(*cell)))[:count], device="cpu")
