"""How many poses a program of the CUDA kernels had best take together: more share what they read, fewer leave room.

    python benchmarks/poses.py                         # without a GPU: registers, warps at once, instructions
    python benchmarks/poses.py --networks R4 R8        # on one: milliseconds, too

The largest attention of each network. A multiprocessor hides what its warps wait for behind other warps, of which
there are as many as there is room for in its registers; so the fewest instructions need not be the shortest time.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from _listing import KERNELS, Listing
from _machine import add_record, save
from _occupancy import largest_call
from _training_step import NETWORKS

from gsa.ops._call import Call, Needed
from gsa.ops.impl.triton import _launch

REPEATS = 20


@contextmanager
def together(count: int) -> Iterator[None]:
    """As many poses as divide their number, up to these, whatever the registers say."""
    ours = _launch.poses_together

    def chosen(kernel: str, call: Call) -> int:
        return max(n for n in range(1, count + 1) if poses_of(kernel, call) % n == 0)

    _launch.poses_together = chosen
    try:
        yield
    finally:
        _launch.poses_together = ours


def poses_of(kernel: str, call: Call) -> int:
    """That a kernel shares out among programs."""
    return call.key.shape[2] if kernel == "keys_backward" else call.spatial.shape[0]


def milliseconds(call: Call) -> dict[str, float]:
    """The median of each kernel, on the GPU."""
    there = Call(*(_numbers(x) for x in call[:7]), call.regular, call.dropout)
    ours, found = _launch._launch, {name: [] for name in KERNELS}

    def timed(name: str, *arguments: object) -> None:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        ours(name, *arguments)
        end.record()
        found[name].append((start, end))

    _launch._launch = timed
    try:
        for _ in range(REPEATS):
            out = _launch.forward(there)
            _launch.backward(torch.randn_like(out), there, Needed())
    finally:
        _launch._launch = ours
    torch.cuda.synchronize()
    return {name: statistics.median(a.elapsed_time(b) for a, b in pairs[3:]) for name, pairs in found.items()}


def _numbers(x: torch.Tensor) -> torch.Tensor:
    """Such a tensor on the GPU."""
    if not x.is_floating_point():
        return torch.ones(x.shape, dtype=x.dtype, device="cuda")
    return torch.randn(x.shape, dtype=x.dtype, device="cuda")


def main(options: argparse.Namespace) -> None:
    head = (
        "| network | kernel | poses together | registers | spilled, B | warps at once | instructions of warps, G | ms |"
    )
    import triton

    told = f"Triton {triton.__version__}, sm_{options.architecture}, float32, batch {options.batch}; * as it is."
    lines = [told, "", head, "|---" * 8 + "|"]
    for name in options.networks:
        call = largest_call(name, options.batch)
        counts = [n for n in range(1, max(call.key.shape[2], call.spatial.shape[0]) + 1) if n & (n - 1) == 0]
        for count in counts:
            with together(count):
                times = milliseconds(call) if torch.cuda.is_available() else {}
            for kernel in KERNELS:
                is_ours = _launch.poses_together(kernel, call) == min(count, poses_of(kernel, call))
                with together(count):
                    made = Listing(kernel, call, options.architecture)
                    cells = [name, kernel, f"{count}{' *' if is_ours else ''}", made.registers, made.spilled]
                    cells += [made.warps_at_once, f"{made.warps * made.issued / 1e9:.3f}"]
                cells.append(f"{times[kernel]:.3f}" if times else "—")
                lines.append("| " + " | ".join(map(str, cells)) + " |")
                print(lines[-1], flush=True)
    save("poses", " ".join(["python benchmarks/poses.py", *sys.argv[1:]]), "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), default=["R4"])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--architecture", type=int, default=90)
    main(parser.parse_args())
