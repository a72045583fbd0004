"""The backward kernels of the regular form; letters in _parts.py."""

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
    settle,
    slice_hash,
    slice_of,
    store,
    store_sum,
    times,
    zeros,
)
from gsa.ops.impl.triton._regular import scaled, scores_of_keys, scores_of_places, scores_of_poses

__all__ = ["keys_backward", "queries_backward", "spatial_backward"]


@triton.jit
def queries_backward(
    grad, query, key, value, query_grad, pose_part, log_sum, mean, pose_score, spatial, pose, window, seed,
    grad_batch, grad_head, query_batch, query_head, key_batch, key_head, value_batch, value_head, dq_batch, dq_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr, T: tl.constexpr, B: tl.constexpr,
    DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """Gradient of T poses of the queries, in one pass: Σ p (dp − mean) x = Σ p dp x − mean Σ p x.

    log_sum and mean are [slices, a, N], pose_score [slices, a, m, N], pose_part [slices, blocks, Q, d, M].
    """
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    BLOCKS: tl.constexpr = (N + B - 1) // B
    slice_, first, block = place(Q, T, BLOCKS)
    pixels, there = own(block, N, B)
    hash_ = slice_hash(seed, slice_)
    nowhere = tl.max_contiguous(pixels // N, B)  # 0
    spatial += nowhere
    at = first * N + pixels
    keys = slice_of(key, key_batch, key_head, slice_, heads)
    values = slice_of(value, value_batch, value_head, slice_, heads)
    q = scaled(poses(slice_of(query, query_batch, query_head, slice_, heads) + at, N, Q, T, D, A), scale * LOG2_E)
    g = scaled(poses(slice_of(grad, grad_batch, grad_head, slice_, heads) + at, N, P, T, D, A), factor)
    at_pose = scores_of_poses(q, pose + first * D * M + nowhere, T, M, D, A)
    top, seen, met = (), (), ()  # seen: Σ p by key pose; met: Σ p dp
    for _ in tl.static_range(T):
        row = ()
        for _ in tl.static_range(M):
            row += (tl.zeros([B], A),)
        top += (tl.full([B], FLOOR, A),)
        seen += (row,)
        met += (row,)
    seen_keys, met_keys = zeros(B, T, D, A), zeros(B, T, D, A)  # Σ p (k + e), Σ p dp (k + e)
    for o in range(UV):
        near, here = moved(pixels, there, o, window, 1, H, W, U, V, B)
        places = spatial + first * D * UV + o
        at_place = scores_of_places(q, places, here, UV, T, D, A)
        scores = scores_of_keys(q, keys + near, at_pose, at_place, N, T, M, D, A)
        tops, weights, befores = (), (), ()
        for t in tl.static_range(T):
            new, before, p = settle(top[t], scores[t])
            tops += (new,)
            befores += (before,)
            weights += (p,)
        gains = ()  # p dp
        for m in tl.static_range(M):
            v = channels(values + near + m * N, M * N, D, A)
            column = ()
            for t in tl.static_range(T):
                dp = kept(dot(g[t], v), (first + t) * M + m, pixels, o, hash_, limit, DROPOUT, N, UV)
                column += (weights[t][m] * dp,)
            gains += (column,)
        seens, mets, before_seen, before_met = (), (), (), ()
        for t in tl.static_range(T):
            weight, gain = weights[t][0], gains[0][t]
            for m in tl.static_range(1, M):
                weight += weights[t][m]
                gain += gains[m][t]
            row_seen, row_met = (), ()
            for m in tl.static_range(M):
                row_seen += (seen[t][m] * befores[t] + weights[t][m],)
                row_met += (met[t][m] * befores[t] + gains[m][t],)
            seens += (row_seen,)
            mets += (row_met,)
            e = channels(places + t * D * UV, UV, D, A)
            before_seen += (plus(times(seen_keys[t], befores[t]), weight, e),)
            before_met += (plus(times(met_keys[t], befores[t]), gain, e),)
        top, seen, met, seen_keys, met_keys = tops, seens, mets, before_seen, before_met
        for m in tl.static_range(M):
            k = channels(keys + near + m * N, M * N, D, A)
            column = ()
            for t in tl.static_range(T):
                column += (weights[t][m],)
            seen_keys = each_plus(seen_keys, column, k)
            met_keys = each_plus(met_keys, gains[m], k)
    rows = slice_.to(tl.int64) * (Q * N) + at
    scores_at = slice_.to(tl.int64) * (Q * M * N) + first * M * N + pixels
    base = slice_of(query_grad, dq_batch, dq_head, slice_, heads) + at
    part = pose_part + ((slice_ * BLOCKS + block).to(tl.int64) * Q + first) * (D * M)
    for t in tl.static_range(T):
        total, gain = seen[t][0], met[t][0]
        for m in tl.static_range(1, M):
            total += seen[t][m]
            gain += met[t][m]
        total = tl.where(there, total, 1.0)
        average = gain / total
        tl.store(log_sum + rows + t * N, top[t] + tl.log2(total), mask=there)
        tl.store(mean + rows + t * N, average, mask=there)
        dq = plus(met_keys[t], -average, seen_keys[t])
        for m in tl.static_range(M):
            ds = met[t][m] - average * seen[t][m]
            dq = plus(dq, ds, channels(pose + nowhere + (first + t) * D * M + m, M, D, A))
            tl.store(pose_score + scores_at + (t * M + m) * N, at_pose[t][m], mask=there)
            store_sum(part + (t * D * M + m), M, times(q[t], tl.where(there, ds / (total * LOG2_E), 0.0)), D)
        store(base + t * N, Q * N, times(dq, scale / total), there, D)


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
    at = first * N + pixels
    queries = slice_of(query, query_batch, query_head, slice_, heads)
    grads = slice_of(grad, grad_batch, grad_head, slice_, heads)
    k = scaled(poses(slice_of(key, key_batch, key_head, slice_, heads) + at, N, M, T, D, A), scale * LOG2_E)
    v = scaled(poses(slice_of(value, value_batch, value_head, slice_, heads) + at, N, M, T, D, A), factor)
    rows = slice_.to(tl.int64) * (Q * N)
    dk, dv = zeros(B, T, D, A), zeros(B, T, D, A)
    for a in range(Q):
        for o in range(UV):
            from_, here = moved(pixels, there, o, window, -1, H, W, U, V, B)
            q = channels(queries + a * N + from_, Q * N, D, A)
            g = channels(grads + a * N + from_, P * N, D, A)
            e = channels(spatial + nowhere + (a * D * UV + o), UV, D, A)
            shift = dot(q, e) * (scale * LOG2_E) - tl.load(log_sum + rows + a * N + from_)
            shift = tl.where(here, shift, -float("inf"))
            average = tl.load(mean + rows + a * N + from_)
            weights, ds = (), ()
            for t in tl.static_range(T):
                pair = a * M + first + t
                score = dot(q, k[t]) + tl.load(pose_score + rows * M + (pair * N + from_))
                p = tl.exp2(score + shift)
                weights += (kept(p, pair, from_, o, hash_, limit, DROPOUT, N, UV),)
                ds += (p * (kept(dot(g, v[t]), pair, from_, o, hash_, limit, DROPOUT, N, UV) - average),)
            dv = each_plus(dv, weights, g)
            dk = each_plus(dk, ds, q)
    dk_base = slice_of(key_grad, dk_batch, dk_head, slice_, heads) + at
    dv_base = slice_of(value_grad, dv_batch, dv_head, slice_, heads) + at
    for t in tl.static_range(T):
        store(dk_base + t * N, M * N, times(dk[t], scale), there, D)
        store(dv_base + t * N, M * N, times(dv[t], factor), there, D)


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
    slice_, first, o = place(Q, T, UV)
    hash_ = slice_hash(seed, slice_)
    queries = slice_of(query, query_batch, query_head, slice_, heads) + first * N
    grads = slice_of(grad, grad_batch, grad_head, slice_, heads) + first * N
    keys = slice_of(key, key_batch, key_head, slice_, heads)
    values = slice_of(value, value_batch, value_head, slice_, heads)
    rows = slice_.to(tl.int64) * (Q * N) + first * N
    de = zeros(B, T, D, A)
    for block in range((N + B - 1) // B):
        pixels, there = own(block, N, B)
        near, here = moved(pixels, there, o, window, 1, H, W, U, V, B)
        q, g = poses(queries + pixels, N, Q, T, D, A), poses(grads + pixels, N, P, T, D, A)
        at_place = scores_of_places(
            q, spatial + tl.max_contiguous(pixels // N, B) + (first * D * UV + o), here, UV, T, D, A
        )
        shifts, averages, ds = (), (), ()
        for t in tl.static_range(T):
            shifts += (at_place[t] * (scale * LOG2_E) - tl.load(log_sum + rows + t * N + pixels),)
            averages += (tl.load(mean + rows + t * N + pixels) / factor,)
            ds += (tl.zeros([B], A),)
        for m in tl.static_range(M):
            k = channels(keys + near + m * N, M * N, D, A)
            v = channels(values + near + m * N, M * N, D, A)
            sums = ()
            for t in tl.static_range(T):
                shift = shifts[t] + tl.load(pose_score + rows * M + (t * M + m) * N + pixels)
                p = tl.exp2(dot(q[t], k) * (scale * LOG2_E) + shift)
                dp = kept(dot(g[t], v), (first + t) * M + m, pixels, o, hash_, limit, DROPOUT, N, UV)
                sums += (ds[t] + p * (dp - averages[t]),)
            ds = sums
        sums = ()
        for t in tl.static_range(T):
            sums += (plus(de[t], ds[t], q[t]),)
        de = sums
    part = spatial_part + (slice_.to(tl.int64) * P + first) * (D * UV) + o
    for t in tl.static_range(T):
        store_sum(part + t * D * UV, UV, times(de[t], scale * factor), D)
