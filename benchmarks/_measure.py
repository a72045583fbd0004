"""Time and memory of a piece of work, and what the machine could do at best."""

import ctypes
import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

__all__ = ["Times", "copy_peak", "memory_growth", "memory_in_use", "sgemm_peak", "side_by_side", "slope"]


_STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Times:
    """Seconds of several runs of the same work."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Times":
        return cls(statistics.median(seconds), min(seconds), max(seconds))


def wait() -> None:
    """Until the GPU has done what it was asked to."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def side_by_side(works: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, Times]:
    """Each work in turn, `repeats` times over: what disturbs one, disturbs all.

    A turn begins with a run that does not count, as in a training loop, where a step follows a step of its own kind;
    but for those that take seconds, which the first turn alone prepares.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    prepared = {name: _seconds(work) for name, work in works.items()}
    for _ in range(repeats):
        for name, work in works.items():
            if prepared[name] < 2:
                work()
            seconds[name].append(_seconds(work))
    return {name: Times.of(values) for name, values in seconds.items()}


def _seconds(work: Callable[[], object]) -> float:
    wait()
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start


def memory_growth(work: Callable[[], object]) -> float | None:
    """Growth of the peak of memory during a second run, in MB: of this process (Linux), or of the GPU's."""
    work()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        wait()
        return (torch.cuda.max_memory_allocated() - before) / 1e6
    before = memory_in_use()  # memory that is free but kept would not be counted again
    if before is None:
        return None
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is in use
    work()
    return max(_status_mb("VmHWM") - before, 0.0)


def memory_in_use() -> float | None:
    """Of this process in MB, after what the C library has kept of freed memory is given back; None but on Linux."""
    if not _STATUS.exists():
        return None
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return _status_mb("VmRSS")


def _status_mb(field: str) -> float:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024 / 1e6


def sgemm_peak(device: torch.device) -> float:
    """FLOP a second of a large float32 matrix product: the best of ten, measured now."""
    a = torch.randn(2048, 2048, device=device)
    return 2 * 2048**3 / min(_seconds(lambda: a @ a) for _ in range(10))


def copy_peak(device: torch.device) -> float:
    """Bytes a second of a large copy, read and written: the best of ten, measured now."""
    source = torch.empty(64 * 2**20, device=device)
    target = torch.empty_like(source)
    return 2 * 4 * source.numel() / min(_seconds(lambda: target.copy_(source)) for _ in range(10))


def slope(x: list[float], y: list[float]) -> float:
    """The exponent p of y ∝ xᵖ, fitted to logarithms."""
    points = [(torch.tensor(a).log(), torch.tensor(b).log()) for a, b in zip(x, y, strict=True) if b > 0]
    xs, ys = (torch.stack(values) for values in zip(*points, strict=True))
    return ((xs - xs.mean()) * (ys - ys.mean())).sum().item() / (xs - xs.mean()).square().sum().item()
