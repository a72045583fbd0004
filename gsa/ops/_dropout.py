"""Attention dropout from a counter: every backend draws the same mask and can draw it again in backward."""

import torch
from torch import Tensor

__all__ = ["dropped", "element_hash", "mix", "slice_hash"]


def mix(x: Tensor) -> Tensor:
    """The 32-bit finaliser of MurmurHash3 (fmix32, Appleby), on int32 taken as unsigned.

    x ^= x >> 16; x *= 0x85EBCA6B; x ^= x >> 13; x *= 0xC2B2AE35; x ^= x >> 16
    """
    x = (x >> 16).bitwise_and_(0xFFFF).bitwise_xor_(x).mul_(-0x7A143595)  # 0x85EBCA6B
    x = (x >> 13).bitwise_and_(0x7FFFF).bitwise_xor_(x).mul_(-0x3D4D51CB)  # 0xC2B2AE35
    return (x >> 16).bitwise_and_(0xFFFF).bitwise_xor_(x)


def slice_hash(seed: Tensor, first: int, count: int) -> Tensor:
    """fmix32(seed ^ fmix32(1 + s)) for slices s = sample·heads + head: int32 [count]."""
    slices = torch.arange(first + 1, first + count + 1, dtype=torch.int32, device=seed.device)
    return mix(seed.to(torch.int32) ^ mix(slices))


def element_hash(pair: Tensor, pixel: Tensor, offset: Tensor, pixels: int, offsets: int) -> Tensor:
    """fmix32((pair·pixels + pixel)·offsets + offset), broadcast: int32.

    `pair` is h·(second poses) + second, where second is the key pose h̃ in the regular form and the query pose ĥ in
    the summed one; `pixel` is y·W + x; `offset` is u·V + v in the rectangle of relative positions.
    """
    return mix((pair * pixels + pixel) * offsets + offset)


def dropped(element: Tensor, slices: Tensor, probability: float) -> Tensor:
    """Where the low 31 bits of fmix32(element ^ slice) are below p·2³¹: bool. What is kept counts 1/(1 − p)."""
    return mix(element ^ slices).bitwise_and_(0x7FFFFFFF) < round(probability * 2**31)
