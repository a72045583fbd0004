"""The forward kernel of the regular form, one softmax over relative positions and key poses; letters in _parts.py."""

import triton
import triton.language as tl

from gsa.ops.impl.triton._parts import (
    FLOOR,
    LOG2_E,
    channels,
    dot,
    each_plus,
    kept,
    moved,
    own,
    place,
    poses,
    settle,
    slice_hash,
    slice_of,
    store,
    times,
    zeros,
)

__all__ = ["forward", "scaled", "scores_of_keys", "scores_of_places", "scores_of_poses"]


@triton.jit
def scaled(xs, factor: tl.constexpr):
    """Each of several, multiplied."""
    zs = ()
    for t in tl.static_range(len(xs)):
        zs += (times(xs[t], factor),)
    return zs


@triton.jit
def scores_of_poses(q, pose, T: tl.constexpr, M: tl.constexpr, D: tl.constexpr, A: tl.constexpr):
    """q·c for T query poses and all key poses."""
    scores = ()
    for t in tl.static_range(T):
        row = ()
        for m in tl.static_range(M):
            row += (dot(q[t], channels(pose + (t * D * M + m), M, D, A)),)
        scores += (row,)
    return scores


@triton.jit
def scores_of_places(q, spatial, here, UV: tl.constexpr, T: tl.constexpr, D: tl.constexpr, A: tl.constexpr):
    """q·e for T query poses; −∞ where there is nothing to see."""
    scores = ()
    for t in tl.static_range(T):
        scores += (tl.where(here, dot(q[t], channels(spatial + t * D * UV, UV, D, A)), -float("inf")),)
    return scores


@triton.jit
def scores_of_keys(
    q, keys, at_pose, at_place,
    N: tl.constexpr, T: tl.constexpr, M: tl.constexpr, D: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """q·(k + e + c): for each of T query poses a tuple over key poses."""
    columns = ()
    for m in tl.static_range(M):
        k = channels(keys + m * N, M * N, D, A)
        column = ()
        for t in tl.static_range(T):
            column += (dot(q[t], k) + (at_pose[t][m] + at_place[t]),)
        columns += (column,)
    return _turned(columns)


@triton.jit
def _turned(columns):
    """Rows of what is given by columns."""
    rows = ()
    for t in tl.static_range(len(columns[0])):
        row = ()
        for m in tl.static_range(len(columns)):
            row += (columns[m][t],)
        rows += (row,)
    return rows


@triton.jit
def forward(
    query, key, value, out, spatial, pose, window, seed,
    query_batch, query_head, key_batch, key_head, value_batch, value_head, out_batch, out_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr, T: tl.constexpr, B: tl.constexpr,
    DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """out(i, h) of `gsa.ops.attend`, for T poses."""
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    slice_, first, block = place(Q, T, (N + B - 1) // B)
    pixels, there = own(block, N, B)
    hash_ = slice_hash(seed, slice_)
    nowhere = tl.max_contiguous(pixels // N, B)  # 0
    spatial += nowhere
    at = first * N + pixels
    keys = slice_of(key, key_batch, key_head, slice_, heads)
    values = slice_of(value, value_batch, value_head, slice_, heads)
    q = scaled(poses(slice_of(query, query_batch, query_head, slice_, heads) + at, N, Q, T, D, A), scale * LOG2_E)
    at_pose = scores_of_poses(q, pose + first * D * M + nowhere, T, M, D, A)
    top, total = (), ()
    for _ in tl.static_range(T):
        top += (tl.full([B], FLOOR, A),)
        total += (tl.zeros([B], A),)
    sums = zeros(B, T, D, A)
    for o in range(UV):
        near, here = moved(pixels, there, o, window, 1, H, W, U, V, B)
        at_place = scores_of_places(q, spatial + first * D * UV + o, here, UV, T, D, A)
        scores = scores_of_keys(q, keys + near, at_pose, at_place, N, T, M, D, A)
        tops, totals, before_sums, weights = (), (), (), ()
        for t in tl.static_range(T):
            new, before, p = settle(top[t], scores[t])
            total_ = total[t] * before
            row = ()
            for m in tl.static_range(M):
                total_ += p[m]
                row += (kept(p[m], (first + t) * M + m, pixels, o, hash_, limit, DROPOUT, N, UV),)
            tops += (new,)
            totals += (total_,)
            before_sums += (times(sums[t], before),)
            weights += (row,)
        top, total, sums = tops, totals, before_sums
        for m in tl.static_range(M):
            column = ()
            for t in tl.static_range(T):
                column += (weights[t][m],)
            sums = each_plus(sums, column, channels(values + near + m * N, M * N, D, A))
    base = slice_of(out, out_batch, out_head, slice_, heads) + at
    for t in tl.static_range(T):
        store(base + t * N, P * N, times(sums[t], factor / tl.where(there, total[t], 1.0)), there, D)
