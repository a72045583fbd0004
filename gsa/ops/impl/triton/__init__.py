"""CUDA kernels in Triton."""

from gsa.ops.impl.triton._launch import backward, forward, is_installed, refusal

__all__ = ["backward", "forward", "is_installed", "refusal"]
