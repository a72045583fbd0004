"""The CUDA kernel of the op; its letters are explained in _parts.py."""

import triton
import triton.language as tl

from gsa.ops.impl.cuda._parts import alive, inner, moved, online, place, rows, single, slice_of, tile

__all__ = ["forward"]


@triton.jit
def forward(
    query, key, value, out, spatial, pose, window, seed,
    query_batch, query_head, key_batch, key_head, value_batch, value_head, out_batch, out_head,
    heads, limit, scale: tl.constexpr, factor: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, D: tl.constexpr,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr,
    MP: tl.constexpr, PP: tl.constexpr, C: tl.constexpr, B: tl.constexpr,
    REGULAR: tl.constexpr, DROPOUT: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """out(i, h) of `gsa.ops.attend`."""
    N: tl.constexpr = H * W
    UV: tl.constexpr = U * V
    slice_, block = place((N + B - 1) // B)
    pixels = block * B + tl.arange(0, B)
    channels, ms, hs = tl.arange(0, C), tl.arange(0, MP), tl.arange(0, PP)
    queries = pixels < N
    q_base = slice_of(query, query_batch, query_head, slice_, heads)
    k_base = slice_of(key, key_batch, key_head, slice_, heads)
    v_base = slice_of(value, value_batch, value_head, slice_, heads)
    o_base = slice_of(out, out_batch, out_head, slice_, heads)
    seed_ = tl.load(seed)
    summed = tl.zeros([PP, B, C], A)
    for a in range(Q):
        q = single(q_base, a, pixels, channels, queries, Q, D, N, A)
        c = rows(pose + a * M * D, ms, channels, D, M, D, A)
        if REGULAR:
            top, total, acc = tl.full([B], -float("inf"), A), tl.zeros([B], A), tl.zeros([B, C], A)
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
                acc = acc * before[:, None] + tl.sum(p[:, :, None] * v, 0)
                top = new
            at = (channels[None, :] * P + a) * N + pixels[:, None]
            total = tl.where(queries, total, 1.0)
            tl.store(o_base + at, acc / total[:, None], mask=queries[:, None] & (channels < D)[None, :])
        else:
            top, total = tl.full([PP, B], -float("inf"), A), tl.zeros([PP, B], A)
            acc = tl.zeros([PP, B, C], A)
            for o in range(UV):
                near, here = moved(pixels, o, window, 1, H, W, U, V)
                k = tile(k_base, ms, near, channels, here, M, D, N, A)
                v = tile(v_base, ms, near, channels, here, M, D, N, A)
                e = rows(spatial + o * D, hs, channels, UV * D, P, D, A)
                _, u, lse = inner(q, k, v, c, ms, scale, M)
                s = tl.sum(q[None, :, :] * e[:, None, :], 2) * scale + lse[None, :]
                s = tl.where(here[None, :], s, -float("inf"))
                top, before, p = online(top, total, s)
                total = total * before + p
                if DROPOUT:
                    p *= alive((hs * Q + a)[:, None], pixels[None, :], o, slice_, seed_, limit, factor, N, UV, A)
                acc = acc * before[:, :, None] + p[:, :, None] * u[None, :, :]
            total = tl.where(queries[None, :], total, 1.0)
            summed += acc / total[:, :, None]
    if not REGULAR:
        at = (channels[None, None, :] * P + hs[:, None, None]) * N + pixels[None, :, None]
        mask = queries[None, :, None] & (hs < P)[:, None, None] & (channels < D)[None, None, :]
        tl.store(o_base + at, summed, mask=mask)
