"""Bounded memory in plain PyTorch, on any device."""

from gsa.ops.impl.tiled._passes import backward, forward

__all__ = ["backward", "forward"]
