"""Bands of query tiles and the keys they see: all the index arithmetic of the tiled backend.

A band is a run of rows of the map, cut into L tiles of ty×tx query pixels; each tile sees a patch of wy×wx key
pixels, the tile and its halo. The products of all queries of a tile with all keys of its patch are one matrix, in
which the score of pixel (y, x) and offset (u, v) stands at a constant stride: a strided view picks exactly the
useful scores. When the window spans the whole map there is one tile a band, the patch is the map itself, every
score is useful, and it is the encoding (listed by offset) that is read through a strided view.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

__all__ = ["Band", "Map", "bands"]


@dataclass(frozen=True)
class Map:
    """H×W pixels with a U×V rectangle of offsets, cut into tiles."""

    height: int
    width: int
    rows: int  # U
    columns: int  # V

    @property
    def spans(self) -> bool:
        """Every pixel sees the whole map."""
        return self.rows == 2 * self.height - 1 and self.columns == 2 * self.width - 1

    @property
    def tile(self) -> tuple[int, int]:
        return _tile_side(self.height, self.rows), _tile_side(self.width, self.columns)

    @property
    def padding(self) -> tuple[int, int, int, int]:
        """Left, right, top, bottom: half a window, and what fills the last tiles."""
        if self.spans:
            return 0, 0, 0, 0
        ty, tx = self.tile
        half_u, half_v = self.rows // 2, self.columns // 2
        return half_v, half_v + -self.width % tx, half_u, half_u + -self.height % ty

    def pad_keys(self, x: Tensor) -> Tensor:
        """[S, M, H, W, d] with the border that the patches reach into."""
        return F.pad(x, (0, 0, *self.padding))

    def unpad_keys(self, x: Tensor) -> Tensor:
        left, _, top, _ = self.padding
        return x[:, :, top : top + self.height, left : left + self.width]


def _tile_side(pixels: int, window: int) -> int:
    """The side that wastes least: products outside the window, overhang, and a fixed price a tile."""
    return min(range(1, 9), key=lambda t: -(-pixels // t) * (t * (t + window - 1) + 16))


def bands(plan: Map, elements_per_row: int, budget: int, device: torch.device) -> Iterator[Band]:
    """Cut the map into bands of at most about `budget` scores, `elements_per_row` for a row of one slice."""
    step = 1 if plan.spans else plan.tile[0]
    rows = max(budget // max(elements_per_row, 1) // step, 1) * step
    for first in range(0, plan.height, rows):
        last = min(first + rows, plan.height)
        yield Band(plan, first, last - first, device)


class Band:
    """Rows `first` to `first + count` of a map, as L tiles.

    Letters in shapes: c slices (sample × head), L tiles, A or M poses, (R, S) the related positions of a pixel:
    its offsets (U, V), or all pixels of the map where the window spans it.
    """

    def __init__(self, plan: Map, first: int, count: int, device: torch.device) -> None:
        self.plan, self.first, self.count, self.device = plan, first, count, device
        if plan.spans:
            self.tile, self.grid = (count, plan.width), (1, 1)
            self.patch = (plan.height, plan.width)
            self.related = self.patch
        else:
            self.tile = plan.tile
            self.grid = (-(-count // self.tile[0]), -(-plan.width // self.tile[1]))
            self.patch = (self.tile[0] + plan.rows - 1, self.tile[1] + plan.columns - 1)
            self.related = (plan.rows, plan.columns)

    @property
    def tiles(self) -> int:
        return self.grid[0] * self.grid[1]

    # Pixels to tiles and back.

    def cut(self, x: Tensor) -> Tensor:
        """Queries of the band: [c, A, H, W, d] -> [c, L, A·ty·tx, d], zeros where the last tiles hang over."""
        (ty, tx), (ly, lx) = self.tile, self.grid
        rows = x[:, :, self.first : self.first + self.count]
        rows = F.pad(rows, (0, 0, 0, lx * tx - self.plan.width, 0, ly * ty - self.count))
        return rearrange(rows, "c a (ly ty) (lx tx) d -> c (ly lx) (a ty tx) d", ly=ly, lx=lx, ty=ty, tx=tx)

    def paste(self, target: Tensor, tiles: Tensor) -> None:
        """Write [c, L, A·ty·tx, d] to the band's rows of [c, A, H, W, d]."""
        (ty, tx), (ly, lx) = self.tile, self.grid
        rows = rearrange(tiles, "c (ly lx) (a ty tx) d -> c a (ly ty) (lx tx) d", ly=ly, lx=lx, ty=ty, tx=tx)
        target[:, :, self.first : self.first + self.count] = rows[:, :, : self.count, : self.plan.width]

    def _key_rows(self) -> slice:
        if self.plan.spans:
            return slice(None)
        return slice(self.first, self.first + self.grid[0] * self.tile[0] + self.plan.rows - 1)

    def patches(self, padded: Tensor) -> Tensor:
        """Keys of every tile: padded [c, M, H′, W′, d] -> [c, L, M·wy·wx, d]."""
        (wy, wx), (ty, tx) = self.patch, self.tile
        unfolded = padded[:, :, self._key_rows()].unfold(2, wy, ty).unfold(3, wx, tx)
        return rearrange(unfolded, "c m ly lx d wy wx -> c (ly lx) (m wy wx) d")

    def add_patches(self, target: Tensor, patches: Tensor) -> None:
        """The adjoint of `patches`: add [c, L, M·wy·wx, d] to the padded [c, M, H′, W′, d]."""
        rows = target[:, :, self._key_rows()]
        poses, height, width = rows.shape[1:4]
        (wy, wx), (ty, tx) = self.patch, self.tile
        columns = rearrange(patches, "c l (m wy wx) d -> c (m d wy wx) l", m=poses, wy=wy, wx=wx)
        folded = F.fold(columns, (height, width), (wy, wx), stride=(ty, tx))
        rows += rearrange(folded, "c (m d) y x -> c m y x d", m=poses)

    # Scores and encodings by related position.

    def scores(self, matrix: Tensor, poses: int, key_poses: int) -> Tensor:
        """The useful entries of [c, L, A·ty·tx, M·wy·wx] as a view [c, L, M, A, ty, tx, R, S]."""
        (ty, tx), (wy, wx) = self.tile, self.patch
        row = key_poses * wy * wx
        shape = (matrix.shape[0], self.tiles, key_poses, poses, ty, tx, *self.related)
        step_y, step_x = (0, 0) if self.plan.spans else (wx, 1)  # the window moves with the pixel
        pixel = ty * tx * row
        strides = (
            self.tiles * poses * pixel,
            poses * pixel,
            wy * wx,
            pixel,
            tx * row + step_y,
            row + step_x,
            wx,
            1,
        )
        return matrix.as_strided(shape, strides)

    def encodings(self, spatial: Tensor) -> Tensor:
        """The part of [P, U, V, d] that the band meets, as a matrix [P, d, U′·V]."""
        if self.plan.spans:
            start = self.plan.height - self.first - self.count
            spatial = spatial[:, start : start + self.plan.height + self.count - 1]
        return spatial.flatten(1, 2).mT

    def add_encodings(self, target: Tensor, gradient: Tensor) -> None:
        """The adjoint of `encodings`: add [P, d, U′·V] to [P, U, V, d]."""
        if self.plan.spans:
            start = self.plan.height - self.first - self.count
            target = target[:, start : start + self.plan.height + self.count - 1]
        target += gradient.mT.reshape(target.shape)

    def by_relation(self, listed: Tensor) -> Tensor:
        """Values listed by offset, [..., ty·tx, U′·V] (contiguous), as a view [..., ty, tx, R, S]."""
        (ty, tx), lead = self.tile, listed.shape[:-2]
        if not self.plan.spans:
            return listed.view(*lead, ty, tx, *self.related)
        columns, size = self.plan.columns, listed.shape[-1]
        flat = listed.view(-1, ty * tx * size)
        view = flat.as_strided(
            (flat.shape[0], ty, tx, *self.related),
            (ty * tx * size, tx * size - columns, size - 1, columns, 1),
            flat.storage_offset() + (ty - 1) * columns + tx - 1,
        )
        return view.view(*lead, *view.shape[1:])

    def by_offset(self, related: Tensor) -> Tensor:
        """The adjoint of `by_relation`: [..., ty, tx, R, S] -> [..., ty·tx, U′·V]."""
        (ty, tx), lead = self.tile, related.shape[:-4]
        if not self.plan.spans:
            return related.reshape(*lead, ty * tx, -1)
        size = (self.plan.height + ty - 1) * self.plan.columns
        listed = related.new_zeros(*lead, ty * tx, size)
        self.by_relation(listed).copy_(related)
        return listed

    # What stands where.

    def positions(self) -> tuple[Tensor, Tensor]:
        """Pixel index y·W + x as [L, 1, 1, ty, tx, 1, 1] and offset index u·V + v, int32, broadcastable to it."""
        y, x = self._pixels()
        if not self.plan.spans:
            u, v = self._count(self.plan.rows, 0), self._count(self.plan.columns, 1)
        else:
            u = self._count(self.plan.height, 0) - y + self.plan.height - 1
            v = self._count(self.plan.width, 1) - x + self.plan.width - 1
        return y * self.plan.width + x, u * self.plan.columns + v

    def visible(self, window: Tensor) -> Tensor:
        """Which related positions are in the window and in the picture: bool [L, 1, ty, tx, R, S].

        Pixels beyond the map see everything, so that no softmax is empty; nobody reads them.
        """
        if self.plan.spans:
            return window.flatten()[self.positions()[1].long()][:, 0]
        y, x = self._pixels()
        key_y = y + self._count(self.plan.rows, 0) - self.plan.rows // 2
        key_x = x + self._count(self.plan.columns, 1) - self.plan.columns // 2
        inside = (key_y >= 0) & (key_y < self.plan.height) & (key_x >= 0) & (key_x < self.plan.width) & window
        return (inside | (y >= self.plan.height) | (x >= self.plan.width))[:, 0]

    def _pixels(self) -> tuple[Tensor, Tensor]:
        """Rows and columns of all queries: int32, broadcastable to [L, 1, 1, ty, tx, 1, 1]."""
        (ty, tx), lx = self.tile, self.grid[1]
        tile = torch.arange(self.tiles, dtype=torch.int32, device=self.device).view(-1, 1, 1, 1, 1, 1, 1)
        inner_y, inner_x = self._count(ty, 0)[..., None, None], self._count(tx, 1)[..., None, None]
        return self.first + tile // lx * ty + inner_y, tile % lx * tx + inner_x

    def _count(self, size: int, axis: int) -> Tensor:
        steps = torch.arange(size, dtype=torch.int32, device=self.device)
        return steps[:, None] if axis == 0 else steps[None, :]
