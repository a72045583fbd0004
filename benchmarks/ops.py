"""Time and memory of one training step, against the direct |H|³ evaluation of the same formula.

    python benchmarks/ops.py                        # RotMNIST R4, summed form, 5×5, batch 8, the paper's dropout
    python benchmarks/ops.py --form regular --group R8 --batch 2

Both run in this process, in turn, for the times; each runs in a fresh process for the memory, which is the growth of
the peak over the process with everything imported. Results go to benchmarks/results.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from _machine import save
from direct import everywhere

import gsa


def make_step(options: argparse.Namespace, backend: str):
    """One training step (forward, backward, Adam) of the RotMNIST network with one evaluation of attention."""
    torch.manual_seed(0)
    network = gsa.create_model("rotmnist_r4_sa", group=options.group, form=options.form, neighbourhood=options.window)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    images, labels = torch.rand(options.batch, 1, 28, 28), torch.randint(10, (options.batch,))

    def step() -> float:
        start = time.perf_counter()
        with everywhere() if backend == "direct" else gsa.ops.use(backend) if backend else nullcontext():
            optimizer.zero_grad()
            F.cross_entropy(network(images), labels).backward()
            optimizer.step()
        return time.perf_counter() - start

    return step


def peak_mb() -> float:
    """Largest resident size of this process so far, in MB (Linux counts KiB, macOS bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def memory_growth(options: argparse.Namespace, backend: str) -> float:
    """Growth of the peak over two steps, in MB, measured in a fresh process."""
    arguments = [f"--{key}={getattr(options, key)}" for key in ("group", "form", "window", "batch")]
    command = [sys.executable, __file__, *arguments, f"--growth-of={backend}"]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(options: argparse.Namespace) -> None:
    backends = ["direct", *(name for name in gsa.ops.backends() if name != "reference")]
    # First of all: a child starts with its parent's peak, so the parent must not have worked yet.
    growth = {backend: memory_growth(options, backend) for backend in backends}
    steps = {backend: make_step(options, backend) for backend in backends}
    for step in steps.values():
        step()  # allocations and compilations of the first step do not count
    times = {backend: [] for backend in backends}
    for _ in range(options.repeats):
        for backend, step in steps.items():
            times[backend].append(step())

    lines = [
        f"One training step of the RotMNIST {options.group} network: {options.form} form, "
        f"{options.window}×{options.window}, batch {options.batch}, dropout 0.1; median of {options.repeats}.",
        "",
        "| evaluation | seconds a step | min – max | times faster | memory growth, MB | times smaller |",
        "|---|---|---|---|---|---|",
    ]
    slowest, largest = statistics.median(times["direct"]), growth["direct"]
    for backend in backends:
        median = statistics.median(times[backend])
        lines.append(
            f"| {backend} | {median:.2f} | {min(times[backend]):.2f} – {max(times[backend]):.2f} | "
            f"{slowest / median:.1f} | {growth[backend]:.0f} | {largest / growth[backend]:.1f} |"
        )
    table = "\n".join(lines)
    print(table)
    command = "python benchmarks/ops.py " + " ".join(sys.argv[1:])
    save(f"ops_{options.group.lower()}_{options.form}_batch{options.batch}", command.strip(), table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", default="R4")
    parser.add_argument("--form", default="summed", choices=("summed", "regular"))
    parser.add_argument("--window", type=int, default=5)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--growth-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.growth_of:
        step = make_step(options, options.growth_of)
        before = peak_mb()
        step()
        step()
        print(peak_mb() - before)
    else:
        main(options)
