"""What the CUDA kernels of group self-attention, in Triton, are made of.

A thread serves one pixel of one slice (head of a sample). Its channels are tiles [channels, B], of the powers of two
that add up to d, so that nothing is padded and no thread waits for another. Features lie as [slices, d, poses, N] with
N = H·W pixels next to one another: the threads of a warp read and write neighbours. Poses that share what they read
are taken T at a time. Scores have the base 2. In backward the queries' kernel computes the
weights again and leaves, for each query, the logarithm of the softmax's denominator, the mean of its gradient and its
products with the encoding of poses; the keys' kernel meets the queries at the mirrored offsets; the encodings' kernel
belongs to one offset. Every number has one owner: no atomics, and the same bits each time.

Letters: a query pose, m key pose, h output pose, o relative position, B pixels of a program. `spatial` is [P, d, U·V],
`pose` [Q, d, M].
"""

import triton
import triton.language as tl

__all__ = [
    "FLOOR", "LOG2_E", "channels", "dot", "each_plus", "kept", "moved", "own", "place", "plus", "poses", "settle",
    "slice_hash", "slice_of", "store", "store_sum", "times", "zeros",
]  # fmt: skip

LOG2_E = tl.constexpr(1.4426950408889634)
_BITS = tl.constexpr(10)  # of the size of the largest tile, 1024 channels
FLOOR = tl.constexpr(-1e30)  # below every score, and finite: differences of such are no NaN


@triton.jit
def place(POSES: tl.constexpr, T: tl.constexpr, COUNT: tl.constexpr):
    """Slice, first of T poses, which of COUNT programs; all on one axis, because a grid's others end at 65 535."""
    EACH: tl.constexpr = POSES // T * COUNT
    return tl.program_id(0) // EACH, tl.program_id(0) % EACH // COUNT * T, tl.program_id(0) % COUNT


@triton.jit
def own(block, N: tl.constexpr, B: tl.constexpr):
    """Pixels of a block, and which of them there are; the first in the place of others.

    Here and in `moved` the compiler is to believe that they are neighbours: so it gives each thread one of them.
    """
    pixels = block * B + tl.arange(0, B)
    there = pixels < N
    return tl.max_contiguous(tl.where(there, pixels, 0), B), there


@triton.jit
def moved(
    pixels, there, o, window, SIGN: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, U: tl.constexpr, V: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Pixels at a relative position (or its mirror image), and whether they take part; themselves where not."""
    y = pixels // W + SIGN * (o // V - U // 2)
    x = pixels % W + SIGN * (o % V - V // 2)
    here = there & (y >= 0) & (y < H) & (x >= 0) & (x < W) & (tl.load(window + o) != 0)
    return tl.max_contiguous(tl.where(here, y * W + x, pixels), B), here


@triton.jit
def slice_of(feature, batch_stride, head_stride, slice_, heads):
    """Where a head of a sample begins."""
    return feature + (slice_ // heads).to(tl.int64) * batch_stride + (slice_ % heads).to(tl.int64) * head_stride


@triton.jit
def _steps(BIT: tl.constexpr, STRIDE: tl.constexpr, D: tl.constexpr):
    """How far the channels of the tile of size 2^BIT lie from the first of all: the larger tiles come before it."""
    return ((tl.arange(0, 1 << BIT) + (D >> (BIT + 1) << (BIT + 1))) * STRIDE)[:, None]


@triton.jit
def channels(base, STRIDE: tl.constexpr, D: tl.constexpr, A: tl.constexpr):
    """The D numbers that lie STRIDE apart, from each of B pointers."""
    tl.static_assert(D < 2048, "more channels than the tiles add up to")
    x = ()
    for bit in tl.static_range(_BITS, -1, -1):
        if D & (1 << bit):
            x += (tl.load(base[None, :] + _steps(bit, STRIDE, D)).to(A),)
    return x


@triton.jit
def poses(base, N: tl.constexpr, POSES: tl.constexpr, T: tl.constexpr, D: tl.constexpr, A: tl.constexpr):
    """T poses of a feature."""
    xs = ()
    for t in tl.static_range(T):
        xs += (channels(base + t * N, POSES * N, D, A),)
    return xs


@triton.jit
def store(base, STRIDE: tl.constexpr, x, there, D: tl.constexpr):
    """Write what `channels` reads."""
    rest = x
    for bit in tl.static_range(_BITS, -1, -1):
        if D & (1 << bit):
            tl.store(base[None, :] + _steps(bit, STRIDE, D), rest[0], mask=there[None, :])
            rest = rest[1:]


@triton.jit
def store_sum(base, STRIDE: tl.constexpr, x, D: tl.constexpr):
    """Write the sums over all pixels."""
    rest = x
    for bit in tl.static_range(_BITS, -1, -1):
        if D & (1 << bit):
            tl.store(base + _steps(bit, STRIDE, D), tl.sum(rest[0], 1)[:, None])
            rest = rest[1:]


@triton.jit
def zeros(B: tl.constexpr, T: tl.constexpr, D: tl.constexpr, A: tl.constexpr):
    """For each of T, channels of nothing."""
    xs = ()
    for _ in tl.static_range(T):
        x = ()
        for bit in tl.static_range(_BITS, -1, -1):
            if D & (1 << bit):
                x += (tl.zeros([1 << bit, B], A),)
        xs += (x,)
    return xs


@triton.jit
def dot(x, y):
    """x·y"""
    total = tl.sum(x[0] * y[0], 0)
    for i in tl.static_range(1, len(x)):
        total += tl.sum(x[i] * y[i], 0)
    return total


@triton.jit
def times(x, w):
    """w x"""
    z = ()
    for i in tl.static_range(len(x)):
        z += (x[i] * w,)
    return z


@triton.jit
def plus(x, w, y):
    """x + w y"""
    z = ()
    for i in tl.static_range(len(x)):
        z += (x[i] + w * y[i],)
    return z


@triton.jit
def each_plus(xs, ws, y):
    """x + w y for each x and its w."""
    zs = ()
    for t in tl.static_range(len(xs)):
        zs += (plus(xs[t], ws[t], y),)
    return zs


@triton.jit
def settle(top, scores):
    """A softmax met by further scores: its new maximum, the factor for what is summed, 2^(scores − maximum)."""
    new = top
    for i in tl.static_range(len(scores)):
        new = tl.maximum(new, scores[i])
    p = ()
    for i in tl.static_range(len(scores)):
        p += (tl.exp2(scores[i] - new),)
    return new, tl.exp2(top - new), p


@triton.jit
def _fmix32(x):
    """MurmurHash3's finaliser, on uint32."""
    x = (x ^ (x >> 16)) * 0x85EBCA6B
    x = (x ^ (x >> 13)) * 0xC2B2AE35
    return x ^ (x >> 16)


@triton.jit
def slice_hash(seed, slice_):
    """What is the slice's own in the mask of gsa/ops/_dropout.py."""
    return _fmix32(tl.load(seed).to(tl.uint32) ^ _fmix32((slice_ + 1).to(tl.uint32)))


@triton.jit
def kept(x, pair, pixels, o, hash_, limit, DROPOUT: tl.constexpr, N: tl.constexpr, UV: tl.constexpr):
    """x where that mask keeps it, else 0; what is kept counts 1/(1 − p), which the caller has in it already."""
    if DROPOUT:
        element = _fmix32((pair * (N * UV) + (pixels * UV + o)).to(tl.uint32))
        x = tl.where((_fmix32(element ^ hash_) & 0x7FFFFFFF).to(tl.int32) >= limit, x, 0.0)
    return x
