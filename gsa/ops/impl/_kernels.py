"""The CUDA kernels of group self-attention, in Triton.

A program serves one block of pixels of one slice (head of a sample) in all poses. Features are [slices, d, poses, N]
with N = H·W pixels next to one another; scores, weights and sums are tensors [poses, pixels] and
[poses, pixels, channels] in registers, and a softmax is taken online over the relative positions. In backward the
queries' program computes the weights again and leaves, for each query, the logarithm of the softmax's denominator and
the mean of its gradient; the keys' program meets the queries at the mirrored offsets; the encodings' program belongs to
one offset. Every number has one owner: no atomics, and the same bits each time.

Letters: a query pose, m key pose, h output pose, o relative position, B pixels of a block, C channels padded to a power
of two. `spatial` is [P, U·V, d], `pose` [Q, M, d].
"""

import triton
import triton.language as tl

__all__ = ["forward", "keys_backward", "queries_backward", "spatial_backward"]


@triton.jit
def _fmix32(x):
    """MurmurHash3's finaliser, on uint32."""
    x = (x ^ (x >> 16)) * 0x85EBCA6B
    x = (x ^ (x >> 13)) * 0xC2B2AE35
    return x ^ (x >> 16)


@triton.jit
def _kept(
    pair, pixel, o, slice_, seed, limit,
    factor: tl.constexpr, N: tl.constexpr, UV: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """The mask of gsa/ops/_dropout.py: 0 where dropped, else 1/(1 − p); pair and pixel broadcast."""
    element = _fmix32(((pair * N + pixel) * UV + o).to(tl.uint32))
    slice_hash = _fmix32(seed.to(tl.uint32) ^ _fmix32((slice_ + 1).to(tl.uint32)))
    low = _fmix32(element ^ slice_hash) & 0x7FFFFFFF
    return (low.to(tl.int64) >= limit).to(A) * factor


@triton.jit
def _tile(base, poses, pixels, channels, here, POSES: tl.constexpr, D: tl.constexpr, N: tl.constexpr, A: tl.constexpr):
    """[poses, B, C] of a feature of one slice; zeros where `here` is false and beyond its poses and channels."""
    at = (channels[None, None, :] * POSES + poses[:, None, None]) * N + pixels[None, :, None]
    mask = here[None, :, None] & (poses < POSES)[:, None, None] & (channels < D)[None, None, :]
    return tl.load(base + at, mask=mask, other=0.0).to(A)


@triton.jit
def _one(base, pose, pixels, channels, here, POSES: tl.constexpr, D: tl.constexpr, N: tl.constexpr, A: tl.constexpr):
    """[B, C]: the same for one pose."""
    at = (channels[None, :] * POSES + pose) * N + pixels[:, None]
    return tl.load(base + at, mask=here[:, None] & (channels < D)[None, :], other=0.0).to(A)


@triton.jit
def _rows(base, rows, channels, stride, COUNT: tl.constexpr, D: tl.constexpr, A: tl.constexpr):
    """[rows, C] of an encoding."""
    mask = (rows < COUNT)[:, None] & (channels < D)[None, :]
    return tl.load(base + rows[:, None] * stride + channels[None, :], mask=mask, other=0.0).to(A)


@triton.jit
def _moved(pixels, o, window, sign: tl.constexpr, H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr):
    """Pixels at a relative position (or its mirror image), and whether they take part."""
    y = pixels // W + sign * (o // V - U // 2)
    x = pixels % W + sign * (o % V - V // 2)
    seen = tl.load(window + o + tl.zeros_like(pixels)) != 0
    here = (pixels < H * W) & (y >= 0) & (y < H) & (x >= 0) & (x < W) & seen
    return tl.where(here, y * W + x, 0), here


@triton.jit
def _slice(feature, batch_stride, head_stride, slice_, heads):
    return feature + (slice_ // heads).to(tl.int64) * batch_stride + (slice_ % heads).to(tl.int64) * head_stride


@triton.jit
def _inner(q, k, v, c, poses, scale: tl.constexpr, M: tl.constexpr):
    """The summed form's stage over key poses: softmax_m w [m, B], its mean of the values u [B, C], LSE_m [B]."""
    s = tl.sum(q[None, :, :] * (k + c[:, None, :]), 2) * scale
    s = tl.where((poses < M)[:, None], s, -float("inf"))
    most = tl.max(s, 0)
    w = tl.exp(s - most[None, :])
    z = tl.sum(w, 0)
    w = w / z[None, :]
    return w, tl.sum(w[:, :, None] * v, 0), most + tl.log(z)


@triton.jit
def _online(top, total, s):
    """New maximum, factor for what was summed before, and exp(s − maximum); −∞ is nothing seen yet."""
    new = tl.maximum(top, s)
    safe = tl.where(new == -float("inf"), 0.0, new)
    return new, tl.exp(top - safe), tl.exp(s - safe)


@triton.jit
def forward(
    query, key, value, out, spatial, pose, window, seed,
    query_batch, query_head, key_batch, key_head, value_batch, value_head, out_batch, out_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr,
    MP: tl.constexpr, PP: tl.constexpr, C: tl.constexpr, B: tl.constexpr,
    PAIRED: tl.constexpr, DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    slice_ = tl.program_id(1)
    pixels = tl.program_id(0) * B + tl.arange(0, B)
    channels, ms, hs = tl.arange(0, C), tl.arange(0, MP), tl.arange(0, PP)
    queries = pixels < N
    q_base = _slice(query, query_batch, query_head, slice_, heads)
    k_base = _slice(key, key_batch, key_head, slice_, heads)
    v_base = _slice(value, value_batch, value_head, slice_, heads)
    o_base = _slice(out, out_batch, out_head, slice_, heads)
    seed_ = tl.load(seed)
    summed = tl.zeros([PP, B, C], A)
    for a in range(Q):
        q = _one(q_base, a, pixels, channels, queries, Q, D, N, A)
        c = _rows(pose + a * M * D, ms, channels, D, M, D, A)
        if PAIRED:
            top, total, acc = tl.full([B], -float("inf"), A), tl.zeros([B], A), tl.zeros([B, C], A)
            for o in range(UV):
                near, here = _moved(pixels, o, window, 1, H, W, U, V)
                k = _tile(k_base, ms, near, channels, here, M, D, N, A)
                v = _tile(v_base, ms, near, channels, here, M, D, N, A)
                e = tl.load(spatial + (a * UV + o) * D + channels, mask=channels < D, other=0.0).to(A)
                s = tl.sum(q[None, :, :] * (k + e[None, None, :] + c[:, None, :]), 2) * scale
                s = tl.where(here[None, :] & (ms < M)[:, None], s, -float("inf"))
                new = tl.maximum(top, tl.max(s, 0))
                safe = tl.where(new == -float("inf"), 0.0, new)
                before, p = tl.exp(top - safe), tl.exp(s - safe[None, :])
                total = total * before + tl.sum(p, 0)
                if DROPOUT:
                    p *= _kept((a * M + ms)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                acc = acc * before[:, None] + tl.sum(p[:, :, None] * v, 0)
                top = new
            at = (channels[None, :] * P + a) * N + pixels[:, None]
            total = tl.where(queries, total, 1.0)
            tl.store(o_base + at, acc / total[:, None], mask=queries[:, None] & (channels < D)[None, :])
        else:
            top, total = tl.full([PP, B], -float("inf"), A), tl.zeros([PP, B], A)
            acc = tl.zeros([PP, B, C], A)
            for o in range(UV):
                near, here = _moved(pixels, o, window, 1, H, W, U, V)
                k = _tile(k_base, ms, near, channels, here, M, D, N, A)
                v = _tile(v_base, ms, near, channels, here, M, D, N, A)
                e = _rows(spatial + o * D, hs, channels, UV * D, P, D, A)
                _, u, lse = _inner(q, k, v, c, ms, scale, M)
                s = tl.sum(q[None, :, :] * e[:, None, :], 2) * scale + lse[None, :]
                s = tl.where(here[None, :], s, -float("inf"))
                top, before, p = _online(top, total, s)
                total = total * before + p
                if DROPOUT:
                    p *= _kept((hs * Q + a)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                acc = acc * before[:, :, None] + p[:, :, None] * u[None, :, :]
            total = tl.where(queries[None, :], total, 1.0)
            summed += acc / total[:, :, None]
    if not PAIRED:
        at = (channels[None, None, :] * P + hs[:, None, None]) * N + pixels[None, :, None]
        mask = queries[None, :, None] & (hs < P)[:, None, None] & (channels < D)[None, None, :]
        tl.store(o_base + at, summed, mask=mask)


@triton.jit
def queries_backward(
    grad, query, key, value, query_grad, pose_part, log_sum, mean, spatial, pose, window, seed,
    grad_batch, grad_head, query_batch, query_head, key_batch, key_head, value_batch, value_head, dq_batch, dq_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr,
    MP: tl.constexpr, PP: tl.constexpr, C: tl.constexpr, B: tl.constexpr,
    PAIRED: tl.constexpr, DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """Gradient of the queries; log_sum and mean [slices, h, a, N] (paired: [slices, a, N]).

    pose_part is [slices, blocks, Q, M, d].
    """
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    slice_ = tl.program_id(1)
    pixels = tl.program_id(0) * B + tl.arange(0, B)
    channels, ms, hs = tl.arange(0, C), tl.arange(0, MP), tl.arange(0, PP)
    queries = pixels < N
    g_base = _slice(grad, grad_batch, grad_head, slice_, heads)
    q_base = _slice(query, query_batch, query_head, slice_, heads)
    k_base = _slice(key, key_batch, key_head, slice_, heads)
    v_base = _slice(value, value_batch, value_head, slice_, heads)
    dq_base = _slice(query_grad, dq_batch, dq_head, slice_, heads)
    seed_ = tl.load(seed)
    part = pose_part + ((slice_ * tl.num_programs(0) + tl.program_id(0)) * Q).to(tl.int64) * M * D
    for a in range(Q):
        q = _one(q_base, a, pixels, channels, queries, Q, D, N, A)
        c = _rows(pose + a * M * D, ms, channels, D, M, D, A)
        dq, pose_sum = tl.zeros([B, C], A), tl.zeros([MP, B], A)
        if PAIRED:
            g = _one(g_base, a, pixels, channels, queries, P, D, N, A)
            top, total, dot = tl.full([B], -float("inf"), A), tl.zeros([B], A), tl.zeros([B], A)
            for o in range(UV):
                near, here = _moved(pixels, o, window, 1, H, W, U, V)
                k = _tile(k_base, ms, near, channels, here, M, D, N, A)
                v = _tile(v_base, ms, near, channels, here, M, D, N, A)
                e = tl.load(spatial + (a * UV + o) * D + channels, mask=channels < D, other=0.0).to(A)
                s = tl.sum(q[None, :, :] * (k + e[None, None, :] + c[:, None, :]), 2) * scale
                s = tl.where(here[None, :] & (ms < M)[:, None], s, -float("inf"))
                new = tl.maximum(top, tl.max(s, 0))
                safe = tl.where(new == -float("inf"), 0.0, new)
                before, p = tl.exp(top - safe), tl.exp(s - safe[None, :])
                total = total * before + tl.sum(p, 0)
                if DROPOUT:
                    p *= _kept((a * M + ms)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                dot = dot * before + tl.sum(p * tl.sum(g[None, :, :] * v, 2), 0)
                top = new
            total = tl.where(queries, total, 1.0)
            lse, average = top + tl.log(total), dot / total
            at = (slice_ * P + a) * N + pixels
            tl.store(log_sum + at, lse, mask=queries)
            tl.store(mean + at, average, mask=queries)
            for o in range(UV):
                near, here = _moved(pixels, o, window, 1, H, W, U, V)
                k = _tile(k_base, ms, near, channels, here, M, D, N, A)
                v = _tile(v_base, ms, near, channels, here, M, D, N, A)
                e = tl.load(spatial + (a * UV + o) * D + channels, mask=channels < D, other=0.0).to(A)
                s = tl.sum(q[None, :, :] * (k + e[None, None, :] + c[:, None, :]), 2) * scale
                p = tl.where(here[None, :] & (ms < M)[:, None], tl.exp(s - lse[None, :]), 0.0)
                dp = tl.sum(g[None, :, :] * v, 2)
                if DROPOUT:
                    dp *= _kept((a * M + ms)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                ds = p * (dp - average[None, :])
                pose_sum += ds
                dq += tl.sum(ds[:, :, None] * (k + e[None, None, :]), 0)
        else:
            g = _tile(g_base, hs, pixels, channels, queries, P, D, N, A)
            top, total = tl.full([PP, B], -float("inf"), A), tl.zeros([PP, B], A)
            dot = tl.zeros([PP, B], A)
            for o in range(UV):
                near, here = _moved(pixels, o, window, 1, H, W, U, V)
                k = _tile(k_base, ms, near, channels, here, M, D, N, A)
                v = _tile(v_base, ms, near, channels, here, M, D, N, A)
                e = _rows(spatial + o * D, hs, channels, UV * D, P, D, A)
                w, u, inner_lse = _inner(q, k, v, c, ms, scale, M)
                s = tl.sum(q[None, :, :] * e[:, None, :], 2) * scale + inner_lse[None, :]
                s = tl.where(here[None, :], s, -float("inf"))
                top, before, p = _online(top, total, s)
                total = total * before + p
                if DROPOUT:
                    p *= _kept((hs * Q + a)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                dot = dot * before + p * tl.sum(g * u[None, :, :], 2)
            total = tl.where(queries[None, :], total, 1.0)
            lse, average = top + tl.log(total), dot / total
            at = ((slice_ * P + hs) * Q + a)[:, None] * N + pixels[None, :]
            mask = queries[None, :] & (hs < P)[:, None]
            tl.store(log_sum + at, lse, mask=mask)
            tl.store(mean + at, average, mask=mask)
            for o in range(UV):
                near, here = _moved(pixels, o, window, 1, H, W, U, V)
                k = _tile(k_base, ms, near, channels, here, M, D, N, A)
                v = _tile(v_base, ms, near, channels, here, M, D, N, A)
                e = _rows(spatial + o * D, hs, channels, UV * D, P, D, A)
                w, u, inner_lse = _inner(q, k, v, c, ms, scale, M)
                s = tl.sum(q[None, :, :] * e[:, None, :], 2) * scale + inner_lse[None, :]
                p = tl.where(here[None, :] & (hs < P)[:, None], tl.exp(s - lse), 0.0)
                kept = p
                dp = tl.sum(g * u[None, :, :], 2)
                if DROPOUT:
                    k_ = _kept((hs * Q + a)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                    kept, dp = p * k_, dp * k_
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
    PAIRED: tl.constexpr, DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """Gradients of keys and values: each key meets the queries that see it."""
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    slice_ = tl.program_id(1)
    pixels = tl.program_id(0) * B + tl.arange(0, B)
    channels, ms, hs = tl.arange(0, C), tl.arange(0, MP), tl.arange(0, PP)
    keys = pixels < N
    g_base = _slice(grad, grad_batch, grad_head, slice_, heads)
    q_base = _slice(query, query_batch, query_head, slice_, heads)
    k = _tile(_slice(key, key_batch, key_head, slice_, heads), ms, pixels, channels, keys, M, D, N, A)
    v = _tile(_slice(value, value_batch, value_head, slice_, heads), ms, pixels, channels, keys, M, D, N, A)
    seed_ = tl.load(seed)
    dk, dv = tl.zeros([MP, B, C], A), tl.zeros([MP, B, C], A)
    for a in range(Q):
        c = _rows(pose + a * M * D, ms, channels, D, M, D, A)
        for o in range(UV):
            from_, here = _moved(pixels, o, window, -1, H, W, U, V)
            q = _one(q_base, a, from_, channels, here, Q, D, N, A)
            if PAIRED:
                at = (slice_ * P + a) * N + from_
                lse, average = tl.load(log_sum + at, mask=here, other=0.0), tl.load(mean + at, mask=here, other=0.0)
                e = tl.load(spatial + (a * UV + o) * D + channels, mask=channels < D, other=0.0).to(A)
                g = _one(g_base, a, from_, channels, here, P, D, N, A)
                s = tl.sum(q[None, :, :] * (k + e[None, None, :] + c[:, None, :]), 2) * scale
                p = tl.where(here[None, :] & (ms < M)[:, None], tl.exp(s - lse[None, :]), 0.0)
                kept = p
                dp = tl.sum(g[None, :, :] * v, 2)
                if DROPOUT:
                    k_ = _kept((a * M + ms)[:, None], from_[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                    kept, dp = p * k_, dp * k_
                ds = p * (dp - average[None, :])
                dv += kept[:, :, None] * g[None, :, :]
                dk += ds[:, :, None] * q[None, :, :]
            else:
                at = ((slice_ * P + hs) * Q + a)[:, None] * N + from_[None, :]
                mask = here[None, :] & (hs < P)[:, None]
                lse, average = tl.load(log_sum + at, mask=mask, other=0.0), tl.load(mean + at, mask=mask, other=0.0)
                e = _rows(spatial + o * D, hs, channels, UV * D, P, D, A)
                g = _tile(g_base, hs, from_, channels, here, P, D, N, A)
                w, u, inner_lse = _inner(q, k, v, c, ms, scale, M)
                s = tl.sum(q[None, :, :] * e[:, None, :], 2) * scale + inner_lse[None, :]
                p = tl.where(mask, tl.exp(s - lse), 0.0)
                kept = p
                dp = tl.sum(g * u[None, :, :], 2)
                if DROPOUT:
                    k_ = _kept((hs * Q + a)[:, None], from_[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                    kept, dp = p * k_, dp * k_
                ds = p * (dp - average)
                du = tl.sum(kept[:, :, None] * g, 0)
                dw = tl.sum(du[None, :, :] * v, 2)
                da = w * (tl.sum(ds, 0)[None, :] + dw - tl.sum(w * dw, 0)[None, :])
                dv += w[:, :, None] * du[None, :, :]
                dk += da[:, :, None] * q[None, :, :]
    at = (channels[None, None, :] * M + ms[:, None, None]) * N + pixels[None, :, None]
    mask = keys[None, :, None] & (ms < M)[:, None, None] & (channels < D)[None, None, :]
    tl.store(_slice(key_grad, dk_batch, dk_head, slice_, heads) + at, dk * scale, mask=mask)
    tl.store(_slice(value_grad, dv_batch, dv_head, slice_, heads) + at, dv, mask=mask)


@triton.jit
def spatial_backward(
    grad, query, key, value, spatial_part, log_sum, mean, spatial, pose, window, seed,
    grad_batch, grad_head, query_batch, query_head, key_batch, key_head, value_batch, value_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr,
    MP: tl.constexpr, PP: tl.constexpr, C: tl.constexpr, B: tl.constexpr,
    PAIRED: tl.constexpr, DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """Gradient of the encoding of one relative position, a part for each slice: [slices, P, U·V, d]."""
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    o, slice_ = tl.program_id(0), tl.program_id(1)
    channels, ms, hs = tl.arange(0, C), tl.arange(0, MP), tl.arange(0, PP)
    g_base = _slice(grad, grad_batch, grad_head, slice_, heads)
    q_base = _slice(query, query_batch, query_head, slice_, heads)
    k_base = _slice(key, key_batch, key_head, slice_, heads)
    v_base = _slice(value, value_batch, value_head, slice_, heads)
    seed_ = tl.load(seed)
    part = spatial_part + (slice_ * P).to(tl.int64) * UV * D + o * D
    acc = tl.zeros([PP, C], A)
    for a in range(Q):
        c = _rows(pose + a * M * D, ms, channels, D, M, D, A)
        one = tl.zeros([C], A)
        for start in range(0, N, B):
            pixels = start + tl.arange(0, B)
            near, here = _moved(pixels, o, window, 1, H, W, U, V)
            q = _one(q_base, a, pixels, channels, here, Q, D, N, A)
            k = _tile(k_base, ms, near, channels, here, M, D, N, A)
            v = _tile(v_base, ms, near, channels, here, M, D, N, A)
            if PAIRED:
                at = (slice_ * P + a) * N + pixels
                lse, average = tl.load(log_sum + at, mask=here, other=0.0), tl.load(mean + at, mask=here, other=0.0)
                e = tl.load(spatial + (a * UV + o) * D + channels, mask=channels < D, other=0.0).to(A)
                g = _one(g_base, a, pixels, channels, here, P, D, N, A)
                s = tl.sum(q[None, :, :] * (k + e[None, None, :] + c[:, None, :]), 2) * scale
                p = tl.where(here[None, :] & (ms < M)[:, None], tl.exp(s - lse[None, :]), 0.0)
                dp = tl.sum(g[None, :, :] * v, 2)
                if DROPOUT:
                    dp *= _kept((a * M + ms)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                ds = tl.sum(p * (dp - average[None, :]), 0)
                one += tl.sum(ds[:, None] * q, 0)
            else:
                at = ((slice_ * P + hs) * Q + a)[:, None] * N + pixels[None, :]
                mask = here[None, :] & (hs < P)[:, None]
                lse, average = tl.load(log_sum + at, mask=mask, other=0.0), tl.load(mean + at, mask=mask, other=0.0)
                e = _rows(spatial + o * D, hs, channels, UV * D, P, D, A)
                g = _tile(g_base, hs, pixels, channels, here, P, D, N, A)
                _, u, inner_lse = _inner(q, k, v, c, ms, scale, M)
                s = tl.sum(q[None, :, :] * e[:, None, :], 2) * scale + inner_lse[None, :]
                p = tl.where(mask, tl.exp(s - lse), 0.0)
                dp = tl.sum(g * u[None, :, :], 2)
                if DROPOUT:
                    dp *= _kept((hs * Q + a)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                ds = p * (dp - average)
                acc += tl.sum(ds[:, :, None] * q[None, :, :], 1)
        if PAIRED:
            tl.store(part + a * UV * D + channels, one * scale, mask=channels < D)
    if not PAIRED:
        mask = (hs < P)[:, None] & (channels < D)[None, :]
        tl.store(part + hs[:, None] * UV * D + channels[None, :], acc * scale, mask=mask)
