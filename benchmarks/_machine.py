"""What a figure was measured on."""

import platform
from pathlib import Path

import torch

import gsa

__all__ = ["describe", "save"]

RESULTS = Path(__file__).parent / "results"


def describe() -> dict[str, str]:
    """Processor, threads and versions."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "processor": model,
        "threads": str(torch.get_num_threads()),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "gsa": gsa.__version__,
    }


def save(name: str, command: str, body: str) -> Path:
    """Write a table to benchmarks/results, headed by its command and the machine."""
    machine = ", ".join(f"{key} {value}" for key, value in describe().items())
    path = RESULTS / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"`{command}`\n\n{machine}\n\n{body}\n")
    return path
