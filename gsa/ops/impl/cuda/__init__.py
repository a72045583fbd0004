"""CUDA kernels in Triton."""

from gsa.ops.impl.cuda._launch import backward, forward, is_installed, refusal
from gsa.ops.impl.cuda._sizes import refuse_size

__all__ = ["backward", "forward", "is_installed", "refusal", "refuse_size"]
