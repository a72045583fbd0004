"""The compiled kernels: which of their builds this installation has and this CPU can run."""

import ctypes
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import torch

__all__ = ["call_size", "is_built", "kernel", "parallel"]

# The same source, built for these vector widths: what torch says of this CPU → the builds it can run, best first.
_BUILDS = {"AVX512": ("avx512", "avx2", "portable"), "AVX2": ("avx2", "portable")}


def _load(capability: str) -> ctypes.CDLL | None:
    """The widest build that is installed and that a CPU of this capability can run."""
    for build in _BUILDS.get(capability, ("portable",)):
        for suffix in EXTENSION_SUFFIXES:
            path = Path(__file__).with_name(f"_{build}{suffix}")
            if path.exists():
                return ctypes.CDLL(str(path))
    return None


def _team() -> int | None:
    """Address of GOMP_parallel in the OpenMP library that torch has loaded; None where there is none."""
    try:
        return ctypes.cast(ctypes.CDLL(None).GOMP_parallel, ctypes.c_void_p).value
    except (AttributeError, OSError, TypeError):
        return None


def _size(build: ctypes.CDLL | None) -> int | None:
    """Bytes of the arguments that a build takes; None from one that does not say."""
    size = getattr(build, "gsa_call_size", None)
    return None if size is None else size()


_build = _load(torch.backends.cpu.get_cpu_capability())
call_size = _size(_build)
parallel = _team()


def is_built() -> bool:
    """Whether the installation found a C++ compiler."""
    return _build is not None


def kernel(direction: str, dtype: torch.dtype) -> Callable:
    """The function of native.cpp for the "forward" or "backward" pass in float32 or float64."""
    return getattr(_build, f"gsa_{direction}_{'double' if dtype == torch.float64 else 'float'}")
