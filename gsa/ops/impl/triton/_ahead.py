"""Kernels that other threads compile before they are needed."""

import logging
from collections.abc import Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import torch
from torch import Tensor

__all__ = ["compile_ahead", "wait_for", "wait_for_all"]

_LOG = logging.getLogger("gsa.ops")
_UNDER_WAY: dict[Hashable, Future] = {}


@cache
def _threads() -> ThreadPoolExecutor:
    _LOG.info("the kernels of a size of map are compiled when it is first met, in some seconds; Triton keeps them")
    return ThreadPoolExecutor(thread_name_prefix="gsa compiles kernels")


def compile_ahead(key: Hashable, kernel: Any, arguments: tuple[Tensor | float, ...], plan: dict[str, Any]) -> None:
    """Begin to compile a kernel for the device that is current.

    Args:
        key: by which it is waited for.
        kernel: of Triton, which keeps what it has compiled, in memory and on disk.
        arguments: as of a launch; of tensors, only the dtypes are looked at.
        plan: what is compiled into it.
    """
    device = torch.cuda.current_device()
    dtypes = [x.dtype if isinstance(x, Tensor) else x for x in arguments]

    def compile_it() -> None:
        with torch.cuda.device(device):
            kernel.warmup(*dtypes, grid=(1,), **plan, num_warps=1)

    _UNDER_WAY[key] = _threads().submit(compile_it)


def wait_for(key: Hashable) -> None:
    """Until it is compiled, if it has been begun; what went wrong goes wrong again in the launch, and is told there."""
    if (future := _UNDER_WAY.get(key)) is not None:
        wait([future])
        _UNDER_WAY.pop(key, None)  # not before: whoever is interrupted waits again, and compiles nothing twice


def wait_for_all() -> None:
    """Until nothing is being compiled."""
    for key in list(_UNDER_WAY):
        wait_for(key)
