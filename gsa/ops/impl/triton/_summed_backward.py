"""The backward kernels of the summed form; letters in _parts.py."""

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
    poses,
    slice_hash,
    slice_of,
    store,
    store_sum,
    times,
    zeros,
)
from gsa.ops.impl.triton._summed import mean_of_keys, scores_of_keys, softmax_of_keys

__all__ = ["keys_backward", "queries_backward", "spatial_backward"]


@triton.jit
def _read_scores(pose_score, N: tl.constexpr, M: tl.constexpr):
    """What the queries' kernel has left of q·c."""
    scores = ()
    for m in tl.static_range(M):
        scores += (tl.load(pose_score + m * N),)
    return scores


@triton.jit
def queries_backward(
    grad, query, key, value, query_grad, pose_part, log_sum, mean, pose_score, spatial, pose, window, seed,
    grad_batch, grad_head, query_batch, query_head, key_batch, key_head, value_batch, value_head, dq_batch, dq_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr, T: tl.constexpr, B: tl.constexpr,
    DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """Gradient of one pose of the queries, T output poses at a time: one pass for their softmax, one for the gradient.

    log_sum and mean are [slices, a, h, N], pose_score [slices, a, m, N], pose_part [slices, blocks, Q, d, M].
    """
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    BLOCKS: tl.constexpr = (N + B - 1) // B
    slice_, a, block = place(Q, 1, BLOCKS)
    pixels, there = own(block, N, B)
    hash_ = slice_hash(seed, slice_)
    nowhere = tl.max_contiguous(pixels // N, B)  # 0
    grads = slice_of(grad, grad_batch, grad_head, slice_, heads) + pixels
    keys = slice_of(key, key_batch, key_head, slice_, heads)
    values = slice_of(value, value_batch, value_head, slice_, heads)
    own_query = slice_of(query, query_batch, query_head, slice_, heads) + a * N + pixels
    q = times(channels(own_query, Q * N, D, A), scale * LOG2_E)
    rows = slice_.to(tl.int64) * (Q * N)
    at_pose, pose_sum = (), ()
    for m in tl.static_range(M):
        score = dot(q, channels(pose + nowhere + (a * D * M + m), M, D, A))
        tl.store(pose_score + rows * M + (a * M + m) * N + pixels, score, mask=there)
        at_pose += (score,)
        pose_sum += (tl.zeros([B], A),)
    dq = times(q, 0.0)
    for first in range(0, P, T):
        g = ()
        top, total, met = (), (), ()
        for t in tl.static_range(T):
            g += (times(channels(grads + (first + t) * N, P * N, D, A), factor),)
            top += (tl.full([B], FLOOR, A),)
            total += (tl.zeros([B], A),)
            met += (tl.zeros([B], A),)
        for o in range(UV):
            near, here = moved(pixels, there, o, window, 1, H, W, U, V, B)
            w, of_key_poses = softmax_of_keys(scores_of_keys(q, keys + near, at_pose, N, M, D, A))
            u = mean_of_keys(values + near, w, N, M, D, A)
            of_key_poses = tl.where(here, of_key_poses, -float("inf"))
            tops, totals, mets = (), (), ()
            for t in tl.static_range(T):
                e = channels(spatial + nowhere + ((first + t) * D * UV + o), UV, D, A)
                score = dot(q, e) + of_key_poses
                new = tl.maximum(top[t], score)
                before, p = tl.exp2(top[t] - new), tl.exp2(score - new)
                dp = kept(dot(g[t], u), (first + t) * Q + a, pixels, o, hash_, limit, DROPOUT, N, UV)
                tops += (new,)
                totals += (total[t] * before + p,)
                mets += (met[t] * before + p * dp,)
            top, total, met = tops, totals, mets
        log, average = (), ()
        for t in tl.static_range(T):
            all_ = tl.where(there, total[t], 1.0)
            log += (top[t] + tl.log2(all_),)
            average += (met[t] / all_,)
            at = rows * P + (a * P + first + t) * N + pixels
            tl.store(log_sum + at, log[t], mask=there)
            tl.store(mean + at, average[t], mask=there)
        for o in range(UV):
            near, here = moved(pixels, there, o, window, 1, H, W, U, V, B)
            w, of_key_poses = softmax_of_keys(scores_of_keys(q, keys + near, at_pose, N, M, D, A))
            u = mean_of_keys(values + near, w, N, M, D, A)
            of_key_poses = tl.where(here, of_key_poses, -float("inf"))
            ds_sum, du = tl.zeros([B], A), times(q, 0.0)
            for t in tl.static_range(T):
                e = channels(spatial + nowhere + ((first + t) * D * UV + o), UV, D, A)
                p = tl.exp2(dot(q, e) + of_key_poses - log[t])
                pair = (first + t) * Q + a
                dp = kept(dot(g[t], u), pair, pixels, o, hash_, limit, DROPOUT, N, UV)
                ds = p * (dp - average[t])
                ds_sum += ds
                dq = plus(dq, ds, e)
                du = plus(du, kept(p, pair, pixels, o, hash_, limit, DROPOUT, N, UV), g[t])
            shift = ds_sum - dot(du, u)
            new_sum = ()
            for m in tl.static_range(M):
                dw = dot(du, channels(values + near + m * N, M * N, D, A))
                da = w[m] * (dw + shift)
                new_sum += (pose_sum[m] + da,)
                dq = plus(dq, da, channels(keys + near + m * N, M * N, D, A))
            pose_sum = new_sum
    part = pose_part + ((slice_ * BLOCKS + block).to(tl.int64) * Q + a) * (D * M)
    for m in tl.static_range(M):
        dq = plus(dq, pose_sum[m], channels(pose + nowhere + (a * D * M + m), M, D, A))
        store_sum(part + m, M, times(q, tl.where(there, pose_sum[m] / LOG2_E, 0.0)), D)
    base = slice_of(query_grad, dq_batch, dq_head, slice_, heads) + a * N + pixels
    store(base, Q * N, times(dq, scale), there, D)


@triton.jit
def keys_backward(
    grad, query, key, value, key_grad, value_grad, log_sum, mean, pose_score, spatial, pose, window, seed,
    grad_batch, grad_head, query_batch, query_head, key_batch, key_head, value_batch, value_head,
    dk_batch, dk_head, dv_batch, dv_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr, T: tl.constexpr, B: tl.constexpr,
    DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """Gradients of T poses of keys and values: each key meets the queries that see it."""
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    slice_, first, block = place(M, T, (N + B - 1) // B)
    pixels, there = own(block, N, B)
    hash_ = slice_hash(seed, slice_)
    nowhere = tl.max_contiguous(pixels // N, B)  # 0
    queries = slice_of(query, query_batch, query_head, slice_, heads)
    grads = slice_of(grad, grad_batch, grad_head, slice_, heads)
    keys = slice_of(key, key_batch, key_head, slice_, heads) + pixels
    values = slice_of(value, value_batch, value_head, slice_, heads) + pixels
    rows = slice_.to(tl.int64) * (Q * N)
    dk, dv = zeros(B, T, D, A), zeros(B, T, D, A)
    for a in range(Q):
        for o in range(UV):
            from_, here = moved(pixels, there, o, window, -1, H, W, U, V, B)
            q = times(channels(queries + a * N + from_, Q * N, D, A), scale * LOG2_E)
            at_pose = _read_scores(pose_score + rows * M + a * M * N + from_, N, M)
            w, of_key_poses = softmax_of_keys(scores_of_keys(q, keys, at_pose, N, M, D, A))
            u = mean_of_keys(values, w, N, M, D, A)
            of_key_poses = tl.where(here, of_key_poses, -float("inf"))
            ds_sum, du = tl.zeros([B], A), times(q, 0.0)
            for h in range(P):
                at = rows * P + (a * P + h) * N + from_
                g = times(channels(grads + h * N + from_, P * N, D, A), factor)
                e = channels(spatial + nowhere + (h * D * UV + o), UV, D, A)
                p = tl.exp2(dot(q, e) + of_key_poses - tl.load(log_sum + at))
                dp = kept(dot(g, u), h * Q + a, from_, o, hash_, limit, DROPOUT, N, UV)
                ds_sum += p * (dp - tl.load(mean + at))
                du = plus(du, kept(p, h * Q + a, from_, o, hash_, limit, DROPOUT, N, UV), g)
            shift = ds_sum - dot(du, u)
            # Again for the T poses that are the program's own: no tuple can be entered at a place known later only.
            own_w, own_da = (), ()
            for t in tl.static_range(T):
                score = dot(q, channels(keys + (first + t) * N, M * N, D, A))
                score += tl.load(pose_score + rows * M + (a * M + first + t) * N + from_)
                weight = tl.exp2(score - tl.where(here, of_key_poses, 0.0))
                dw = dot(du, channels(values + (first + t) * N, M * N, D, A))
                own_w += (tl.where(here, weight, 0.0),)
                own_da += (tl.where(here, weight * (dw + shift), 0.0),)
            dv = each_plus(dv, own_w, du)
            dk = each_plus(dk, own_da, q)
    dk_base = slice_of(key_grad, dk_batch, dk_head, slice_, heads) + first * N + pixels
    dv_base = slice_of(value_grad, dv_batch, dv_head, slice_, heads) + first * N + pixels
    for t in tl.static_range(T):
        store(dk_base + t * N, M * N, times(dk[t], 1 / LOG2_E), there, D)
        store(dv_base + t * N, M * N, dv[t], there, D)


@triton.jit
def spatial_backward(
    grad, query, key, value, spatial_part, log_sum, mean, pose_score, spatial, pose, window, seed,
    grad_batch, grad_head, query_batch, query_head, key_batch, key_head, value_batch, value_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr, T: tl.constexpr, B: tl.constexpr,
    DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """Gradient of T poses of the encoding of one relative position, a part for each slice: [slices, P, d, U·V]."""
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    slice_, first, o = place(P, T, UV)
    hash_ = slice_hash(seed, slice_)
    queries = slice_of(query, query_batch, query_head, slice_, heads)
    grads = slice_of(grad, grad_batch, grad_head, slice_, heads) + first * N
    keys = slice_of(key, key_batch, key_head, slice_, heads)
    values = slice_of(value, value_batch, value_head, slice_, heads)
    rows = slice_.to(tl.int64) * (Q * N)
    de = zeros(B, T, D, A)
    for block in range((N + B - 1) // B):
        pixels, there = own(block, N, B)
        near, here = moved(pixels, there, o, window, 1, H, W, U, V, B)
        places = spatial + tl.max_contiguous(pixels // N, B) + (first * D * UV + o)
        g = poses(grads + pixels, N, P, T, D, A)
        for a in range(Q):
            q = times(channels(queries + a * N + pixels, Q * N, D, A), scale * LOG2_E)
            at_pose = _read_scores(pose_score + rows * M + a * M * N + pixels, N, M)
            w, of_key_poses = softmax_of_keys(scores_of_keys(q, keys + near, at_pose, N, M, D, A))
            u = mean_of_keys(values + near, w, N, M, D, A)
            of_key_poses = tl.where(here, of_key_poses, -float("inf"))
            ds = ()
            for t in tl.static_range(T):
                at = rows * P + (a * P + first + t) * N + pixels
                p = tl.exp2(dot(q, channels(places + t * D * UV, UV, D, A)) + of_key_poses - tl.load(log_sum + at))
                dp = kept(dot(g[t], u), (first + t) * Q + a, pixels, o, hash_, limit, DROPOUT, N, UV)
                ds += (p * (dp * factor - tl.load(mean + at)),)
            de = each_plus(de, ds, q)
    part = spatial_part + (slice_.to(tl.int64) * P + first) * (D * UV) + o
    for t in tl.static_range(T):
        store_sum(part + t * D * UV, UV, times(de[t], 1 / LOG2_E), D)
