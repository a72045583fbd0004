"""The tensors of a call as the tiled backend works on them, and the chunks it takes them in."""

from collections.abc import Iterator

import torch
from torch import Tensor

from gsa.ops._call import Call
from gsa.ops._dropout import dropped, element_hash, slice_hash
from gsa.ops.impl.tiled._bands import Band, Map, bands
from gsa.ops.impl.tiled._stages import Stages, softmax

__all__ = ["Work"]

_CHUNK = {
    "cpu": 1 << 18,
    "cuda": 1 << 24,
    "mps": 1 << 24,
}  # scores worked on at a time: a cache of a core, a fill of a GPU


class Work:
    """The five tensors, flattened to slices, scaled and padded, and the chunks they are worked on in."""

    def __init__(self, call: Call) -> None:
        call = call.to(call.sum_dtype)
        self.slices, self.scale = call.slices, call.query.shape[-1] ** -0.5
        self.plan = Map(*call.query.shape[3:5], *call.window.shape)
        self.query = call.query.flatten(0, 1) * self.scale
        self.key = self.plan.pad_keys(call.key.flatten(0, 1))
        self.value = self.plan.pad_keys(call.value.flatten(0, 1)) / (1 - call.dropout)  # what is kept counts more
        self.spatial, self.pose = call.spatial, call.pose
        self.window, self.seed, self.regular, self.dropout = call[5:9]
        self._matrix: Tensor | None = None

    def chunks(self) -> Iterator[tuple[Band, slice]]:
        """Pairs of a band and a run of slices, of about one budget each."""
        budget = _CHUNK.get(self.query.device.type, _CHUNK["cpu"])
        related = self.key.shape[1] * self.query.shape[1]
        if not self.regular:
            related = max(related, self.query.shape[1] * self.spatial.shape[0])
        a_row = related * self.plan.width * self.window.numel()
        for band in bands(self.plan, a_row, budget, self.query.device):
            self._describe(band)
            step = max(budget // (a_row * band.count), 1)
            for start in range(0, self.slices, step):
                yield band, slice(start, min(start + step, self.slices))

    def _describe(self, band: Band) -> None:
        """What all slices of a band share: the border, and the counters of dropout."""
        visible = band.visible(self.window)
        self.border = torch.zeros_like(visible, dtype=self.query.dtype).masked_fill_(~visible, -torch.inf)
        if self.dropout:
            poses, queries, keys = self.spatial.shape[0], self.query.shape[1], self.key.shape[1]
            count = keys if self.regular else queries
            pair = torch.arange(poses * count, dtype=torch.int32, device=self.query.device).view(poses, count)
            pair = (pair.T if self.regular else pair)[:, :, None, None, None, None]  # [M, P] or [P, Q]
            pixel, offset = band.positions()
            self.element = element_hash(pair, pixel, offset, self.plan.height * self.plan.width, self.window.numel())

    def weigh(self, band: Band, part: slice) -> Stages:
        """Both stages of the softmax for a run of slices of a band."""
        query = band.cut(self.query[part])  # [c, L, Q·ty·tx, d]
        key, value = band.patches(self.key[part]), band.patches(self.value[part])
        poses, queries, keys = self.spatial.shape[0], self.query.shape[1], self.key.shape[1]

        content = band.scores(query @ key.mT, queries, keys)
        by_pose = query.unflatten(2, (queries, -1)) @ self.pose.mT  # [c, L, Q, ty·tx, M]
        by_pose = by_pose.movedim(-1, 2).unflatten(-1, band.tile)[..., None, None]
        # `out` makes the sum contiguous, poses first, where the strided view of the scores would not.
        content = torch.add(content, by_pose, out=content.new_empty(content.shape))
        inner, total = softmax(content, 2)

        encodings = band.encodings(self.spatial)
        if self.regular:
            position = query.unflatten(2, (poses, -1)) @ encodings  # [c, L, P, ty·tx, U·V]
        else:
            position = (query[:, :, None] @ encodings).unflatten(3, (queries, -1))
            total = total.unsqueeze(2)
        position = band.by_relation(position)
        outer = total.add_(self.border if self.regular else self.border[:, None]) + position
        outer = outer.flatten(-2).softmax(-1).view(outer.shape)

        drop = None
        if self.dropout:
            slices = slice_hash(self.seed, part.start, part.stop - part.start).view(-1, *[1] * 7)
            drop = dropped(self.element, slices, self.dropout)
        return Stages(query, key, value, inner, outer, drop, self.regular)

    def spread(self, band: Band, weights: Tensor) -> Tensor:
        """The adjoint of `Band.scores`: [c, L, M, A, ty, tx, R, S] -> [c, L, A·ty·tx, M·wy·wx].

        One matrix is used again and again: only its useful entries are ever written, the others stay zero.
        """
        count, tiles, keys, poses = weights.shape[:4]
        (ty, tx), (wy, wx) = band.tile, band.patch
        shape = (count, tiles, poses * ty * tx, keys * wy * wx)
        if self._matrix is None or self._matrix.shape != shape:
            self._matrix = weights.new_zeros(shape)
        band.scores(self._matrix, poses, keys).copy_(weights)
        return self._matrix

    def pull_pose(self, stages: Stages, d_content: Tensor, d_pose: Tensor) -> Tensor:
        """Gradient through q·ρ_H: adds to `d_pose` [Q, M, d] and returns that of the queries' tiles."""
        summed = d_content.sum((-2, -1)).flatten(-2).movedim(2, -1)  # [c, L, Q, ty·tx, M]
        query = stages.query.unflatten(2, summed.shape[2:4])
        d_pose += torch.einsum("clqtm,clqtd->qmd", summed, query)
        return (summed @ self.pose).flatten(2, 3)

    def pull_spatial(self, band: Band, stages: Stages, d_outer: Tensor, d_spatial: Tensor) -> Tensor:
        """Gradient through q·ρ_x: adds to `d_spatial` [P, U, V, d] and returns that of the queries' tiles."""
        listed = band.by_offset(d_outer)  # [c, L, P, (Q,) ty·tx, U·V]
        encodings = band.encodings(self.spatial)
        if self.regular:
            query = stages.query.unflatten(2, listed.shape[2:4])
            band.add_encodings(d_spatial, torch.einsum("clpto,clptd->pdo", listed, query))
            return (listed @ encodings.mT).flatten(2, 3)
        listed = listed.flatten(3, 4)
        band.add_encodings(d_spatial, torch.einsum("clpto,cltd->pdo", listed, stages.query))
        return (listed @ encodings.mT).sum(2)
