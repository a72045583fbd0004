"""What a figure was measured on, and where it is written: outputs/benchmarks, or benchmarks/results with --record."""

import argparse
import platform
import sys
from pathlib import Path

import torch
from _measure import sgemm_peak

import gsa

__all__ = ["add_record", "describe", "results", "save"]

_KEPT = Path(__file__).parent / "results"


def add_record(parser: argparse.ArgumentParser) -> None:
    """The option that every benchmark has."""
    parser.add_argument("--record", action="store_true", help="into benchmarks/results, not outputs/benchmarks")


def results() -> Path:
    """Where this command writes."""
    folder = _KEPT if "--record" in sys.argv else Path("outputs/benchmarks")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def describe() -> dict[str, str]:
    """Processor, threads, versions, and what a large float32 product gets of the machine at this moment."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "processor": model,
        "threads": str(torch.get_num_threads()),
        "sgemm": f"{sgemm_peak(torch.device('cpu')) / 1e9:.0f} GFLOP/s",
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "gsa": gsa.__version__,
    }


def save(name: str, command: str, body: str) -> Path:
    """Write a table, headed by its command and the machine."""
    machine = ", ".join(f"{key} {value}" for key, value in describe().items())
    path = results() / f"{name}.md"
    path.write_text(f"`{command}`\n\n{machine}\n\n{body}\n")
    print(path)
    return path
