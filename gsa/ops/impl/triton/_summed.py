"""The forward kernel of the summed form, a softmax over key poses inside one over positions; letters in _parts.py."""

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
    plus,
    slice_hash,
    slice_of,
    store,
    times,
    zeros,
)

__all__ = ["forward", "mean_of_keys", "scores_of_keys", "softmax_of_keys"]


@triton.jit
def softmax_of_keys(scores):
    """Softmax over key poses, and the logarithm of its denominator."""
    most = scores[0]
    for m in tl.static_range(1, len(scores)):
        most = tl.maximum(most, scores[m])
    total = tl.exp2(scores[0] - most)
    for m in tl.static_range(1, len(scores)):
        total += tl.exp2(scores[m] - most)
    w = ()
    for m in tl.static_range(len(scores)):
        w += (tl.exp2(scores[m] - most) / total,)
    return w, most + tl.log2(total)


@triton.jit
def scores_of_keys(
    q, keys, at_pose, N: tl.constexpr, M: tl.constexpr, D: tl.constexpr, A: tl.constexpr
):  # fmt: skip
    """q·(k + c) for all key poses."""
    scores = ()
    for m in tl.static_range(M):
        scores += (dot(q, channels(keys + m * N, M * N, D, A)) + at_pose[m],)
    return scores


@triton.jit
def mean_of_keys(values, w, N: tl.constexpr, M: tl.constexpr, D: tl.constexpr, A: tl.constexpr):
    """The mean of the values over key poses."""
    u = times(channels(values, M * N, D, A), w[0])
    for m in tl.static_range(1, M):
        u = plus(u, w[m], channels(values + m * N, M * N, D, A))
    return u


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
    slice_, first, block = place(P, T, (N + B - 1) // B)
    pixels, there = own(block, N, B)
    hash_ = slice_hash(seed, slice_)
    nowhere = tl.max_contiguous(pixels // N, B)  # 0
    queries = slice_of(query, query_batch, query_head, slice_, heads) + pixels
    keys = slice_of(key, key_batch, key_head, slice_, heads)
    values = slice_of(value, value_batch, value_head, slice_, heads)
    summed = zeros(B, T, D, A)
    for a in range(Q):
        q = times(channels(queries + a * N, Q * N, D, A), scale * LOG2_E)
        at_pose = ()
        for m in tl.static_range(M):
            at_pose += (dot(q, channels(pose + nowhere + (a * D * M + m), M, D, A)),)
        top, total = (), ()
        for _ in tl.static_range(T):
            top += (tl.full([B], FLOOR, A),)
            total += (tl.zeros([B], A),)
        sums = zeros(B, T, D, A)
        for o in range(UV):
            near, here = moved(pixels, there, o, window, 1, H, W, U, V, B)
            w, of_key_poses = softmax_of_keys(scores_of_keys(q, keys + near, at_pose, N, M, D, A))
            u = mean_of_keys(values + near, w, N, M, D, A)
            of_key_poses = tl.where(here, of_key_poses, -float("inf"))
            tops, totals, before_sums, weights = (), (), (), ()
            for t in tl.static_range(T):
                e = channels(spatial + nowhere + ((first + t) * D * UV + o), UV, D, A)
                score = dot(q, e) + of_key_poses
                new = tl.maximum(top[t], score)
                before, p = tl.exp2(top[t] - new), tl.exp2(score - new)
                tops += (new,)
                totals += (total[t] * before + p,)
                before_sums += (times(sums[t], before),)
                weights += (kept(p, (first + t) * Q + a, pixels, o, hash_, limit, DROPOUT, N, UV),)
            top, total, sums = tops, totals, each_plus(before_sums, weights, u)
        new_summed = ()
        for t in tl.static_range(T):
            new_summed += (plus(summed[t], factor / tl.where(there, total[t], 1.0), sums[t]),)
        summed = new_summed
    base = slice_of(out, out_batch, out_head, slice_, heads) + first * N + pixels
    for t in tl.static_range(T):
        store(base + t * N, P * N, summed[t], there, D)
