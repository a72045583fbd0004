"""The CUDA kernels of the op's gradients; their letters are explained in _parts.py."""

import triton
import triton.language as tl

from gsa.ops.impl.cuda._parts import alive, inner, moved, online, place, rows, single, slice_of, tile

__all__ = ["keys_backward", "queries_backward", "spatial_backward"]


@triton.jit
def queries_backward(
    grad, query, key, value, query_grad, pose_part, log_sum, mean, spatial, pose, window, seed,
    grad_batch, grad_head, query_batch, query_head, key_batch, key_head, value_batch, value_head, dq_batch, dq_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr,
    MP: tl.constexpr, PP: tl.constexpr, C: tl.constexpr, B: tl.constexpr,
    REGULAR: tl.constexpr, DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """Gradient of the queries; log_sum and mean [slices, h, a, N] (regular: [slices, a, N]).

    pose_part is [slices, blocks, Q, M, d].
    """
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    slice_, block = place((N + B - 1) // B)
    pixels = block * B + tl.arange(0, B)
    channels, ms, hs = tl.arange(0, C), tl.arange(0, MP), tl.arange(0, PP)
    queries = pixels < N
    g_base = slice_of(grad, grad_batch, grad_head, slice_, heads)
    q_base = slice_of(query, query_batch, query_head, slice_, heads)
    k_base = slice_of(key, key_batch, key_head, slice_, heads)
    v_base = slice_of(value, value_batch, value_head, slice_, heads)
    dq_base = slice_of(query_grad, dq_batch, dq_head, slice_, heads)
    first = slice_.to(tl.int64) * (N * P * (1 if REGULAR else Q))
    log_sum += first
    mean += first
    seed_ = tl.load(seed)
    part = pose_part + tl.program_id(0).to(tl.int64) * (Q * M * D)
    for a in range(Q):
        q = single(q_base, a, pixels, channels, queries, Q, D, N, A)
        c = rows(pose + a * M * D, ms, channels, D, M, D, A)
        dq, pose_sum = tl.zeros([B, C], A), tl.zeros([MP, B], A)
        if REGULAR:
            g = single(g_base, a, pixels, channels, queries, P, D, N, A)
            top, total, dot = tl.full([B], -float("inf"), A), tl.zeros([B], A), tl.zeros([B], A)
            for o in range(UV):
                near, here = moved(pixels, o, window, 1, H, W, U, V)
                k = tile(k_base, ms, near, channels, here, M, D, N, A)
                v = tile(v_base, ms, near, channels, here, M, D, N, A)
                e = tl.load(spatial + (a * UV + o) * D + channels, mask=channels < D, other=0.0).to(A)
                s = tl.sum(q[None, :, :] * (k + e[None, None, :] + c[:, None, :]), 2) * scale
                s = tl.where(here[None, :] & (ms < M)[:, None], s, -float("inf"))
                new = tl.maximum(top, tl.max(s, 0))
                safe = tl.where(new == -float("inf"), 0.0, new)
                before, p = tl.exp(top - safe), tl.exp(s - safe[None, :])
                total = total * before + tl.sum(p, 0)
                if DROPOUT:
                    p *= alive((a * M + ms)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                dot = dot * before + tl.sum(p * tl.sum(g[None, :, :] * v, 2), 0)
                top = new
            total = tl.where(queries, total, 1.0)
            lse, average = top + tl.log(total), dot / total
            at = a * N + pixels
            tl.store(log_sum + at, lse, mask=queries)
            tl.store(mean + at, average, mask=queries)
            for o in range(UV):
                near, here = moved(pixels, o, window, 1, H, W, U, V)
                k = tile(k_base, ms, near, channels, here, M, D, N, A)
                v = tile(v_base, ms, near, channels, here, M, D, N, A)
                e = tl.load(spatial + (a * UV + o) * D + channels, mask=channels < D, other=0.0).to(A)
                s = tl.sum(q[None, :, :] * (k + e[None, None, :] + c[:, None, :]), 2) * scale
                p = tl.where(here[None, :] & (ms < M)[:, None], tl.exp(s - lse[None, :]), 0.0)
                dp = tl.sum(g[None, :, :] * v, 2)
                if DROPOUT:
                    dp *= alive((a * M + ms)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                ds = p * (dp - average[None, :])
                pose_sum += ds
                dq += tl.sum(ds[:, :, None] * (k + e[None, None, :]), 0)
        else:
            g = tile(g_base, hs, pixels, channels, queries, P, D, N, A)
            top, total = tl.full([PP, B], -float("inf"), A), tl.zeros([PP, B], A)
            dot = tl.zeros([PP, B], A)
            for o in range(UV):
                near, here = moved(pixels, o, window, 1, H, W, U, V)
                k = tile(k_base, ms, near, channels, here, M, D, N, A)
                v = tile(v_base, ms, near, channels, here, M, D, N, A)
                e = rows(spatial + o * D, hs, channels, UV * D, P, D, A)
                w, u, inner_lse = inner(q, k, v, c, ms, scale, M)
                s = tl.sum(q[None, :, :] * e[:, None, :], 2) * scale + inner_lse[None, :]
                s = tl.where(here[None, :], s, -float("inf"))
                top, before, p = online(top, total, s)
                total = total * before + p
                if DROPOUT:
                    p *= alive((hs * Q + a)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                dot = dot * before + p * tl.sum(g * u[None, :, :], 2)
            total = tl.where(queries[None, :], total, 1.0)
            lse, average = top + tl.log(total), dot / total
            at = (hs * Q + a)[:, None] * N + pixels[None, :]
            mask = queries[None, :] & (hs < P)[:, None]
            tl.store(log_sum + at, lse, mask=mask)
            tl.store(mean + at, average, mask=mask)
            for o in range(UV):
                near, here = moved(pixels, o, window, 1, H, W, U, V)
                k = tile(k_base, ms, near, channels, here, M, D, N, A)
                v = tile(v_base, ms, near, channels, here, M, D, N, A)
                e = rows(spatial + o * D, hs, channels, UV * D, P, D, A)
                w, u, inner_lse = inner(q, k, v, c, ms, scale, M)
                s = tl.sum(q[None, :, :] * e[:, None, :], 2) * scale + inner_lse[None, :]
                p = tl.where(here[None, :] & (hs < P)[:, None], tl.exp(s - lse), 0.0)
                kept = p
                dp = tl.sum(g * u[None, :, :], 2)
                if DROPOUT:
                    alive_ = alive((hs * Q + a)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                    kept, dp = p * alive_, dp * alive_
                ds = p * (dp - average)
                du = tl.sum(kept[:, :, None] * g, 0)
                dw = tl.sum(du[None, :, :] * v, 2)
                da = w * (tl.sum(ds, 0)[None, :] + dw - tl.sum(w * dw, 0)[None, :])
                pose_sum += da
                dq += tl.sum(da[:, :, None] * k, 0) + tl.sum(ds[:, :, None] * e[:, None, :], 0)
        dq += tl.sum(pose_sum[:, :, None] * c[:, None, :], 0)
        at = (channels[None, :] * Q + a) * N + pixels[:, None]
        tl.store(dq_base + at, dq * scale, mask=queries[:, None] & (channels < D)[None, :])
        pose_grad = tl.sum(pose_sum[:, :, None] * q[None, :, :], 1) * scale
        mask = (ms < M)[:, None] & (channels < D)[None, :]
        tl.store(part + (a * M + ms)[:, None] * D + channels[None, :], pose_grad, mask=mask)


@triton.jit
def keys_backward(
    grad, query, key, value, key_grad, value_grad, log_sum, mean, spatial, pose, window, seed,
    grad_batch, grad_head, query_batch, query_head, key_batch, key_head, value_batch, value_head,
    dk_batch, dk_head, dv_batch, dv_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr,
    MP: tl.constexpr, PP: tl.constexpr, C: tl.constexpr, B: tl.constexpr,
    REGULAR: tl.constexpr, DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """Gradients of keys and values: each key meets the queries that see it."""
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    slice_, block = place((N + B - 1) // B)
    pixels = block * B + tl.arange(0, B)
    channels, ms, hs = tl.arange(0, C), tl.arange(0, MP), tl.arange(0, PP)
    keys = pixels < N
    g_base = slice_of(grad, grad_batch, grad_head, slice_, heads)
    q_base = slice_of(query, query_batch, query_head, slice_, heads)
    k = tile(slice_of(key, key_batch, key_head, slice_, heads), ms, pixels, channels, keys, M, D, N, A)
    v = tile(slice_of(value, value_batch, value_head, slice_, heads), ms, pixels, channels, keys, M, D, N, A)
    first = slice_.to(tl.int64) * (N * P * (1 if REGULAR else Q))
    log_sum += first
    mean += first
    seed_ = tl.load(seed)
    dk, dv = tl.zeros([MP, B, C], A), tl.zeros([MP, B, C], A)
    for a in range(Q):
        c = rows(pose + a * M * D, ms, channels, D, M, D, A)
        for o in range(UV):
            from_, here = moved(pixels, o, window, -1, H, W, U, V)
            q = single(q_base, a, from_, channels, here, Q, D, N, A)
            if REGULAR:
                at = a * N + from_
                lse, average = tl.load(log_sum + at, mask=here, other=0.0), tl.load(mean + at, mask=here, other=0.0)
                e = tl.load(spatial + (a * UV + o) * D + channels, mask=channels < D, other=0.0).to(A)
                g = single(g_base, a, from_, channels, here, P, D, N, A)
                s = tl.sum(q[None, :, :] * (k + e[None, None, :] + c[:, None, :]), 2) * scale
                p = tl.where(here[None, :] & (ms < M)[:, None], tl.exp(s - lse[None, :]), 0.0)
                kept = p
                dp = tl.sum(g[None, :, :] * v, 2)
                if DROPOUT:
                    alive_ = alive((a * M + ms)[:, None], from_[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                    kept, dp = p * alive_, dp * alive_
                ds = p * (dp - average[None, :])
                dv += kept[:, :, None] * g[None, :, :]
                dk += ds[:, :, None] * q[None, :, :]
            else:
                at = (hs * Q + a)[:, None] * N + from_[None, :]
                mask = here[None, :] & (hs < P)[:, None]
                lse, average = tl.load(log_sum + at, mask=mask, other=0.0), tl.load(mean + at, mask=mask, other=0.0)
                e = rows(spatial + o * D, hs, channels, UV * D, P, D, A)
                g = tile(g_base, hs, from_, channels, here, P, D, N, A)
                w, u, inner_lse = inner(q, k, v, c, ms, scale, M)
                s = tl.sum(q[None, :, :] * e[:, None, :], 2) * scale + inner_lse[None, :]
                p = tl.where(mask, tl.exp(s - lse), 0.0)
                kept = p
                dp = tl.sum(g * u[None, :, :], 2)
                if DROPOUT:
                    alive_ = alive((hs * Q + a)[:, None], from_[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                    kept, dp = p * alive_, dp * alive_
                ds = p * (dp - average)
                du = tl.sum(kept[:, :, None] * g, 0)
                dw = tl.sum(du[None, :, :] * v, 2)
                da = w * (tl.sum(ds, 0)[None, :] + dw - tl.sum(w * dw, 0)[None, :])
                dv += w[:, :, None] * du[None, :, :]
                dk += da[:, :, None] * q[None, :, :]
    at = (channels[None, None, :] * M + ms[:, None, None]) * N + pixels[None, :, None]
    mask = keys[None, :, None] & (ms < M)[:, None, None] & (channels < D)[None, None, :]
    tl.store(slice_of(key_grad, dk_batch, dk_head, slice_, heads) + at, dk * scale, mask=mask)
    tl.store(slice_of(value_grad, dv_batch, dv_head, slice_, heads) + at, dv, mask=mask)


@triton.jit
def spatial_backward(
    grad, query, key, value, spatial_part, log_sum, mean, spatial, pose, window, seed,
    grad_batch, grad_head, query_batch, query_head, key_batch, key_head, value_batch, value_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr,
    MP: tl.constexpr, PP: tl.constexpr, C: tl.constexpr, B: tl.constexpr,
    REGULAR: tl.constexpr, DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """Gradient of the encoding of one relative position, a part for each slice: [slices, P, U·V, d]."""
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    slice_, o = place(UV)
    channels, ms, hs = tl.arange(0, C), tl.arange(0, MP), tl.arange(0, PP)
    g_base = slice_of(grad, grad_batch, grad_head, slice_, heads)
    q_base = slice_of(query, query_batch, query_head, slice_, heads)
    k_base = slice_of(key, key_batch, key_head, slice_, heads)
    v_base = slice_of(value, value_batch, value_head, slice_, heads)
    first = slice_.to(tl.int64) * (N * P * (1 if REGULAR else Q))
    log_sum += first
    mean += first
    seed_ = tl.load(seed)
    part = spatial_part + slice_.to(tl.int64) * (P * UV * D) + o * D
    acc = tl.zeros([PP, C], A)
    for a in range(Q):
        c = rows(pose + a * M * D, ms, channels, D, M, D, A)
        one = tl.zeros([C], A)
        for start in range(0, N, B):
            pixels = start + tl.arange(0, B)
            near, here = moved(pixels, o, window, 1, H, W, U, V)
            q = single(q_base, a, pixels, channels, here, Q, D, N, A)
            k = tile(k_base, ms, near, channels, here, M, D, N, A)
            v = tile(v_base, ms, near, channels, here, M, D, N, A)
            if REGULAR:
                at = a * N + pixels
                lse, average = tl.load(log_sum + at, mask=here, other=0.0), tl.load(mean + at, mask=here, other=0.0)
                e = tl.load(spatial + (a * UV + o) * D + channels, mask=channels < D, other=0.0).to(A)
                g = single(g_base, a, pixels, channels, here, P, D, N, A)
                s = tl.sum(q[None, :, :] * (k + e[None, None, :] + c[:, None, :]), 2) * scale
                p = tl.where(here[None, :] & (ms < M)[:, None], tl.exp(s - lse[None, :]), 0.0)
                dp = tl.sum(g[None, :, :] * v, 2)
                if DROPOUT:
                    dp *= alive((a * M + ms)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                ds = tl.sum(p * (dp - average[None, :]), 0)
                one += tl.sum(ds[:, None] * q, 0)
            else:
                at = (hs * Q + a)[:, None] * N + pixels[None, :]
                mask = here[None, :] & (hs < P)[:, None]
                lse, average = tl.load(log_sum + at, mask=mask, other=0.0), tl.load(mean + at, mask=mask, other=0.0)
                e = rows(spatial + o * D, hs, channels, UV * D, P, D, A)
                g = tile(g_base, hs, pixels, channels, here, P, D, N, A)
                _, u, inner_lse = inner(q, k, v, c, ms, scale, M)
                s = tl.sum(q[None, :, :] * e[:, None, :], 2) * scale + inner_lse[None, :]
                p = tl.where(mask, tl.exp(s - lse), 0.0)
                dp = tl.sum(g * u[None, :, :], 2)
                if DROPOUT:
                    dp *= alive((hs * Q + a)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                ds = p * (dp - average)
                acc += tl.sum(ds[:, :, None] * q[None, :, :], 1)
        if REGULAR:
            tl.store(part + a * UV * D + channels, one * scale, mask=channels < D)
    if not REGULAR:
        mask = (hs < P)[:, None] & (channels < D)[None, :]
        tl.store(part + hs[:, None] * UV * D + channels[None, :], acc * scale, mask=mask)
