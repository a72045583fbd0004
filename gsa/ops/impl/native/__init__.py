"""CPU kernels in C++."""

from gsa.ops.impl.native._kernels import backward, forward, refusal
from gsa.ops.impl.native._library import is_built

__all__ = ["backward", "forward", "is_built", "refusal"]
