"""Tensors as text: little-endian numbers, deflated, in base64."""

import base64
import zlib
from typing import Any

import torch
from torch import Tensor

__all__ = ["packed"]

_TYPES = {torch.uint8: "uint8", torch.int8: "int8", torch.float32: "float32", torch.float64: "float64"}


def packed(values: Tensor, bits: int | None = None) -> dict[str, Any]:
    """A tensor as plain values for JSON; with 8 bits, rounded to whole multiples of `scale`.

        value = scale · stored,   |value| ≤ scale · 127, or scale · 255 where no value is negative

    Args:
        values: of 32 or 64 bits.
        bits: 8, or None for the numbers as they are.

    Returns:
        {"type", "shape", "scale", "data"}
    """
    values, scale = values.detach().cpu(), 1.0
    if bits == 8:
        signed = bool((values < 0).any())
        scale = values.abs().max().clamp_min(1e-30).item() / (127 if signed else 255)
        values = (values / scale).round().to(torch.int8 if signed else torch.uint8)
    content = base64.b64encode(zlib.compress(values.contiguous().numpy().tobytes(), 9)).decode()
    return {"type": _TYPES[values.dtype], "shape": list(values.shape), "scale": scale, "data": content}
