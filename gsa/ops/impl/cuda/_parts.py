"""What the CUDA kernels of group self-attention, in Triton, are made of.

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

__all__ = ["alive", "inner", "moved", "online", "place", "rows", "single", "slice_of", "tile"]


@triton.jit
def _fmix32(x):
    """MurmurHash3's finaliser, on uint32."""
    x = (x ^ (x >> 16)) * 0x85EBCA6B
    x = (x ^ (x >> 13)) * 0xC2B2AE35
    return x ^ (x >> 16)


@triton.jit
def alive(
    pair, pixel, o, slice_, seed, limit,
    factor: tl.constexpr, N: tl.constexpr, UV: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """The mask of gsa/ops/_dropout.py: 0 where dropped, else 1/(1 − p); pair and pixel broadcast."""
    element = _fmix32(((pair * N + pixel) * UV + o).to(tl.uint32))
    slice_hash = _fmix32(seed.to(tl.uint32) ^ _fmix32((slice_ + 1).to(tl.uint32)))
    low = _fmix32(element ^ slice_hash) & 0x7FFFFFFF
    return (low.to(tl.int64) >= limit).to(A) * factor


@triton.jit
def tile(base, poses, pixels, channels, here, POSES: tl.constexpr, D: tl.constexpr, N: tl.constexpr, A: tl.constexpr):
    """[poses, B, C] of a feature of one slice; zeros where `here` is false and beyond its poses and channels."""
    at = (channels[None, None, :] * POSES + poses[:, None, None]) * N + pixels[None, :, None]
    mask = here[None, :, None] & (poses < POSES)[:, None, None] & (channels < D)[None, None, :]
    return tl.load(base + at, mask=mask, other=0.0).to(A)


@triton.jit
def single(base, pose, pixels, channels, here, POSES: tl.constexpr, D: tl.constexpr, N: tl.constexpr, A: tl.constexpr):
    """[B, C]: the same for one pose."""
    at = (channels[None, :] * POSES + pose) * N + pixels[:, None]
    return tl.load(base + at, mask=here[:, None] & (channels < D)[None, :], other=0.0).to(A)


@triton.jit
def rows(base, rows, channels, stride, COUNT: tl.constexpr, D: tl.constexpr, A: tl.constexpr):
    """[rows, C] of an encoding."""
    mask = (rows < COUNT)[:, None] & (channels < D)[None, :]
    return tl.load(base + rows[:, None] * stride + channels[None, :], mask=mask, other=0.0).to(A)


@triton.jit
def moved(pixels, o, window, sign: tl.constexpr, H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr):
    """Pixels at a relative position (or its mirror image), and whether they take part."""
    y = pixels // W + sign * (o // V - U // 2)
    x = pixels % W + sign * (o % V - V // 2)
    seen = tl.load(window + o + tl.zeros_like(pixels)) != 0
    here = (pixels < H * W) & (y >= 0) & (y < H) & (x >= 0) & (x < W) & seen
    return tl.where(here, y * W + x, 0), here


@triton.jit
def place(COUNT: tl.constexpr):
    """A slice, and which of its COUNT programs this is; on one axis, because a grid's others end at 65 535."""
    return tl.program_id(0) // COUNT, tl.program_id(0) % COUNT


@triton.jit
def slice_of(feature, batch_stride, head_stride, slice_, heads):
    """Where a head of a sample begins."""
    return feature + (slice_ // heads).to(tl.int64) * batch_stride + (slice_ % heads).to(tl.int64) * head_stride


@triton.jit
def inner(q, k, v, c, poses, scale: tl.constexpr, M: tl.constexpr):
    """The summed form's stage over key poses: softmax_m w [m, B], its mean of the values u [B, C], LSE_m [B]."""
    s = tl.sum(q[None, :, :] * (k + c[:, None, :]), 2) * scale
    s = tl.where((poses < M)[:, None], s, -float("inf"))
    most = tl.max(s, 0)
    w = tl.exp(s - most[None, :])
    z = tl.sum(w, 0)
    w = w / z[None, :]
    return w, tl.sum(w[:, :, None] * v, 0), most + tl.log(z)


@triton.jit
def online(top, total, s):
    """New maximum, factor for what was summed before, and exp(s − maximum); −∞ is nothing seen yet."""
    new = tl.maximum(top, s)
    safe = tl.where(new == -float("inf"), 0.0, new)
    return new, tl.exp(top - safe), tl.exp(s - safe)
