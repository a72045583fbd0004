"""CUDA kernels in Triton."""

from gsa.ops.impl.cuda._launch import backward, forward, is_installed, refusal

__all__ = ["backward", "forward", "is_installed", "refusal"]
