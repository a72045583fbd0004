"""What the page does with packed tensors, in Python."""

import base64
import zlib

import torch


def unpacked(stored):
    """What `packed` was given, to rounding."""
    content = bytearray(zlib.decompress(base64.b64decode(stored["data"])))
    return torch.frombuffer(content, dtype=getattr(torch, stored["type"])).view(stored["shape"]) * stored["scale"]
