"""Bounded memory in plain PyTorch, on any device: band by band, in tiles, everything recomputed in backward.

The softmax over key poses m and offsets o is taken in two exact stages,

    softmax_{m,o}(a + p) = softmax_o( LSE_m(a) + p ) · softmax_m(a),

a = q·k + q·ρ_H free of the output pose, p = q·ρ_x free of the key pose, so the summed form needs |H|²n²
exponentials a pixel instead of |H|³n². Both forms share the stages; they differ in how the outer weights,
`outer`, meet the inner ones, `inner`:

    regular:  weight[m, h] = outer[h] · inner[m, h]            summed:  weight[m, h] = Σ_q outer[h, q] · inner[m, q]

Shapes: c slices, L tiles, then poses (P output, Q query, M key), pixels ty tx of a tile, related positions R S.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from gsa.ops._call import Call, Gradients
from gsa.ops._dropout import dropped, element_hash, slice_hash
from gsa.ops.impl._bands import Band, Map, bands

__all__ = ["backward", "forward"]

_CHUNK = {"cpu": 1 << 18, "cuda": 1 << 24}  # scores worked on at a time: a cache of a core, a fill of a GPU


def forward(call: Call) -> Tensor:
    """Arguments as in `gsa.ops.attend`; [B, E, P, H, W, d]."""
    work = _Work(call)
    out = call.query.new_empty(work.slices, call.spatial.shape[0], *call.query.shape[3:])
    for band, part in work.chunks():
        stages = work.weigh(band, part)
        matrix = work.spread(band, stages.weights())
        band.paste(out[part], matrix @ stages.value)
    return out.view(*call.query.shape[:2], *out.shape[1:])


def backward(grad: Tensor, call: Call) -> Gradients:
    """Gradients of query, key, value, spatial and pose."""
    work = _Work(call)
    grad = grad.flatten(0, 1).to(work.query.dtype)
    d_query = torch.empty_like(work.query)
    d_key, d_value = torch.zeros_like(work.key), torch.zeros_like(work.value)
    d_spatial, d_pose = torch.zeros_like(work.spatial), torch.zeros_like(work.pose)

    for band, part in work.chunks():
        stages = work.weigh(band, part)
        arriving = band.cut(grad[part])
        band.add_patches(d_value[part], work.spread(band, stages.weights()).mT @ arriving)

        d_weights = band.scores(arriving @ stages.value.mT, work.spatial.shape[0], work.key.shape[1])
        d_content, d_outer = stages.differentiate(d_weights.contiguous())

        matrix = work.spread(band, d_content)
        d_tile = matrix @ stages.key
        band.add_patches(d_key[part], matrix.mT @ stages.query)
        d_tile += work.pull_pose(stages, d_content, d_pose)
        d_tile += work.pull_spatial(band, stages, d_outer, d_spatial)
        band.paste(d_query[part], d_tile)

    d_query *= work.scale
    d_value /= 1 - call.dropout
    d_key, d_value = work.plan.unpad_keys(d_key), work.plan.unpad_keys(d_value)
    gradients = (d_query, d_key, d_value, d_spatial, d_pose)
    return tuple(_returned(gradient, like) for gradient, like in zip(gradients, call.tensors, strict=True))


def _returned(gradient: Tensor, like: Tensor) -> Tensor:
    return gradient.reshape(like.shape).to(like.dtype).contiguous()


class _Work:
    """The five tensors, flattened to slices, scaled and padded, and the chunks they are worked on in."""

    def __init__(self, call: Call) -> None:
        call = call.to(call.exact)
        self.slices, self.scale = call.slices, call.query.shape[-1] ** -0.5
        self.plan = Map(*call.query.shape[3:5], *call.window.shape)
        self.query = call.query.flatten(0, 1) * self.scale
        self.key = self.plan.pad_keys(call.key.flatten(0, 1))
        self.value = self.plan.pad_keys(call.value.flatten(0, 1)) / (1 - call.dropout)  # what is kept counts more
        self.spatial, self.pose = call.spatial, call.pose
        self.window, self.seed, self.regular, self.dropout = call[5:]
        self._matrix: Tensor | None = None

    def chunks(self):
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

    def weigh(self, band: Band, part: slice) -> "_Stages":
        """Both stages of the softmax for a run of slices of a band."""
        query = band.cut(self.query[part])  # [c, L, Q·ty·tx, d]
        key, value = band.patches(self.key[part]), band.patches(self.value[part])
        poses, queries, keys = self.spatial.shape[0], self.query.shape[1], self.key.shape[1]

        content = band.scores(query @ key.mT, queries, keys)
        by_pose = query.unflatten(2, (queries, -1)) @ self.pose.mT  # [c, L, Q, ty·tx, M]
        by_pose = by_pose.movedim(-1, 2).unflatten(-1, band.tile)[..., None, None]
        # `out` makes the sum contiguous, poses first, where the strided view of the scores would not.
        content = torch.add(content, by_pose, out=content.new_empty(content.shape))
        inner, total = _softmax(content, 2)

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
        return _Stages(query, key, value, inner, outer, drop, self.regular)

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

    def pull_pose(self, stages: "_Stages", d_content: Tensor, d_pose: Tensor) -> Tensor:
        """Gradient through q·ρ_H: adds to `d_pose` [Q, M, d] and returns that of the queries' tiles."""
        summed = d_content.sum((-2, -1)).flatten(-2).movedim(2, -1)  # [c, L, Q, ty·tx, M]
        query = stages.query.unflatten(2, summed.shape[2:4])
        d_pose += torch.einsum("clqtm,clqtd->qmd", summed, query)
        return (summed @ self.pose).flatten(2, 3)

    def pull_spatial(self, band: Band, stages: "_Stages", d_outer: Tensor, d_spatial: Tensor) -> Tensor:
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


@dataclass
class _Stages:
    """Tiles of queries, patches of keys and values, and the two stages of their softmax."""

    query: Tensor  # [c, L, Q·ty·tx, d], scaled
    key: Tensor  # [c, L, M·wy·wx, d]
    value: Tensor
    inner: Tensor  # [c, L, M, Q, ty, tx, R, S]
    outer: Tensor  # [c, L, P, ty, tx, R, S] or [c, L, P, Q, ty, tx, R, S]
    drop: Tensor | None  # bool, [c, L, M, P, …] or [c, L, P, Q, …]
    regular: bool

    def weights(self) -> Tensor:
        """[c, L, M, P, ty, tx, R, S]"""
        if self.regular:
            return self._without_dropped_(self.outer.unsqueeze(2) * self.inner)
        outer = self._kept_outer()
        return _contract((outer[:, :, None, :, q], self.inner[:, :, :, None, q]) for q in range(outer.shape[3]))

    def differentiate(self, d_weights: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of the content scores [c, L, M, Q, …] and of the outer scores, shaped like `outer`.

        Overwrites `d_weights`.
        """
        if self.regular:
            d_weights = self._without_dropped_(d_weights)
            d_outer = (d_weights * self.inner).sum(2)
            d_inner = d_weights * self.outer.unsqueeze(2)
        else:
            poses = range(self.outer.shape[2])
            outer = self._kept_outer()
            d_outer = _contract(
                (d_weights[:, :, m, :, None], self.inner[:, :, m, None]) for m in range(self.inner.shape[2])
            )
            d_outer = self._without_dropped_(d_outer)
            d_inner = _contract((d_weights[:, :, :, p, None], outer[:, :, None, p]) for p in poses)
        d_outer -= (d_outer * self.outer).sum((-2, -1), keepdim=True)
        d_outer *= self.outer
        d_total = d_outer if self.regular else d_outer.sum(2)
        d_inner += (d_total - (d_inner * self.inner).sum(2)).unsqueeze(2)
        return d_inner.mul_(self.inner), d_outer

    def _kept_outer(self) -> Tensor:
        return self.outer if self.drop is None else self.outer.masked_fill(self.drop, 0)

    def _without_dropped_(self, x: Tensor) -> Tensor:
        return x if self.drop is None else x.masked_fill_(self.drop, 0)


def _softmax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """softmax and log-sum-exp over `dim`."""
    log_weights = x.log_softmax(dim)
    total = x.select(dim, 0) - log_weights.select(dim, 0)
    return log_weights.exp_(), total


def _contract(pairs) -> Tensor:
    """Σ a·b over pairs of broadcasting tensors, in one running buffer."""
    pairs = iter(pairs)
    first, second = next(pairs)
    total = first * second
    for a, b in pairs:
        total.addcmul_(a, b)
    return total
