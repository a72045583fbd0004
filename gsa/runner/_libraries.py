"""What a training asks of the libraries beneath torch, unless the environment says otherwise."""

import ctypes
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["granted_cores", "settle"]

_BLOCKS = 64 * 2**20  # bytes; larger ones are given back to the system
_KEPT = 512 * 2**20  # bytes at the end of the heap
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_PARAMETERS = {"MALLOC_MMAP_THRESHOLD_": (-3, _BLOCKS), "MALLOC_TRIM_THRESHOLD_": (-1, _KEPT)}  # of mallopt(3)


def settle() -> None:
    """Threads that wait soon sleep, and memory that is freed is kept for the next step; for child processes, too.

    torch's threads spin long, on cores that others could use. glibc gives large blocks back to the system, which
    empties every page of them before the next step has them again: up to a third of its time (benchmarks/steps.py,
    --memory). There are as many threads as cores were granted. OMP_NUM_THREADS, OMP_WAIT_POLICY, GOMP_SPINCOUNT,
    MALLOC_… and GLIBC_TUNABLES in the environment have their way. To be called before torch is loaded.
    """
    if cores := granted_cores():
        os.environ.setdefault("OMP_NUM_THREADS", cores)
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    if not any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        _keep_freed_memory()


def granted_cores() -> str | None:
    """Of a job of SLURM, which a cluster need not hold to them, or of a container, whose time is a share of all cores;
    None where neither says."""
    if cores := os.environ.get("SLURM_CPUS_PER_TASK"):
        return cores
    with suppress(OSError, ValueError):
        quota, period = map(int, _QUOTA.read_text().split())  # "max" where there is none
        if (count := max(round(quota / period), 1)) < (os.cpu_count() or 1):
            return str(count)
    return None


def _keep_freed_memory() -> None:
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's; no other C library has it
    if set_option is None or not set_option(*_PARAMETERS["MALLOC_MMAP_THRESHOLD_"]):
        return  # of versions that refuse it, the default is better than the other option alone
    set_option(*_PARAMETERS["MALLOC_TRIM_THRESHOLD_"])
    os.environ |= {name: str(value) for name, (_, value) in _PARAMETERS.items()}
