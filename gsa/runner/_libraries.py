"""What a training asks of the libraries beneath torch, unless the environment says otherwise, and Hydra of Python."""

import argparse
import ctypes
import os
from typing import Any

__all__ = ["let_hydra_parse", "settle"]

_BLOCKS = 64 * 2**20  # bytes; larger ones are given back to the system
_KEPT = 512 * 2**20  # bytes at the end of the heap
_PARAMETERS = {"MALLOC_MMAP_THRESHOLD_": (-3, _BLOCKS), "MALLOC_TRIM_THRESHOLD_": (-1, _KEPT)}  # of mallopt(3)


def settle() -> None:
    """Threads that wait soon sleep, and memory that is freed is kept for the next step; for child processes, too.

    torch's threads spin long, on cores that others could use. glibc gives large blocks back to the system, which
    empties every page of them before the next step has them again: up to a third of its time (benchmarks/steps.py,
    --memory). A job of SLURM has as many threads as it asked for cores. OMP_NUM_THREADS, OMP_WAIT_POLICY,
    GOMP_SPINCOUNT, MALLOC_… and GLIBC_TUNABLES in the environment have their way. To be called before torch is loaded.
    """
    if cores := os.environ.get("SLURM_CPUS_PER_TASK"):  # which a cluster need not hold a job to
        os.environ.setdefault("OMP_NUM_THREADS", cores)
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    if not any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        _keep_freed_memory()


def _keep_freed_memory() -> None:
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's; no other C library has it
    if set_option is None or not set_option(*_PARAMETERS["MALLOC_MMAP_THRESHOLD_"]):
        return  # of versions that refuse it, the default is better than the other option alone
    set_option(*_PARAMETERS["MALLOC_TRIM_THRESHOLD_"])
    os.environ |= {name: str(value) for name, (_, value) in _PARAMETERS.items()}


def let_hydra_parse() -> None:
    """Have the argparse of Python 3.14 take an option whose help is no text yet, such as one of Hydra 1.3.

    Earlier ones did; since then the help of every option is looked at when it is added, and no command could begin.
    """
    kind: Any = argparse._ActionsContainer
    look = getattr(kind, "_check_help", None)
    if look is not None and not hasattr(look, "passes_over"):

        def look_at_texts(self: Any, action: argparse.Action) -> None:
            if isinstance(action.help, str | None):
                look(self, action)

        look_at_texts.passes_over = True  # type: ignore[attr-defined]
        kind._check_help = look_at_texts
