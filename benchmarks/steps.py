"""Time and memory of a training step of the networks for larger pictures, by name.

    python benchmarks/steps.py                                    # what docs/pictures.md quotes
    python benchmarks/steps.py imagefolder_gsa --side 128 --batch 16 --repeats 5
    python benchmarks/steps.py imagefolder_gsa --side 64 --batch 16 --waiting default short --neighbours 2

A step is forward, backward and Adam, in float32 on the CPU. Each case runs in a process of its own; the memory is the
growth of its peak over the process with everything imported. Seconds of the clock are those of an idle machine only;
seconds of processors, all threads together, hold on a busy one too. Threads that wait for others spin for a short while
and then sleep, as in `python train.py` (GOMP_SPINCOUNT=20000), or as OpenMP has it by default, or sleep at once
(OMP_WAIT_POLICY=PASSIVE); --neighbours are processes that each keep a core busy meanwhile. Results go to
outputs/benchmarks.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import torch
import torch.nn.functional as F
from _machine import add_record, save

import gsa

WAITING = {"default": {}, "short": {"GOMP_SPINCOUNT": "20000"}, "asleep": {"OMP_WAIT_POLICY": "PASSIVE"}}
CASES = (("imagefolder_gsa", 64, 16), ("imagefolder_gsa", 224, 8), ("pcam_gsa", 96, 32))


def measure(name: str, side: int, batch: int, repeats: int) -> dict[str, float]:
    """Medians of seconds by the clock and by processors, and growth of the peak of memory in MB."""
    torch.manual_seed(0)
    network = gsa.create_model(name)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    images = torch.rand(batch, gsa.models.preset(name).keywords["in_channels"], side, side)
    labels = torch.randint(network.num_classes, (batch,))

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    before, clock, processors = peak(), [], []
    for _ in range(1 + repeats):
        starts = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        F.cross_entropy(network(images), labels).backward()
        optimizer.step()
        clock.append(time.perf_counter() - starts[0])
        processors.append(time.process_time() - starts[1])
    return {
        "clock": statistics.median(clock[1:]),
        "processors": statistics.median(processors[1:]),
        "memory": (peak() - before) / 1e6,
    }


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """While it runs, so many processes keep a core busy each."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()


def main(options: argparse.Namespace) -> None:
    cases = [(options.name, options.side, options.batch)] if options.name else CASES
    lines = ["| network | side | batch | waiting | clock, s | processors, s | memory, MB |", "|---" * 7 + "|"]
    for (name, side, batch), waiting in product(cases, options.waiting):
        command = [sys.executable, __file__, name, f"--side={side}", f"--batch={batch}", f"--repeats={options.repeats}"]
        with neighbours(options.neighbours):
            done = subprocess.run(
                [*command, "--here"], stdout=subprocess.PIPE, text=True, check=True, env=os.environ | WAITING[waiting]
            )
        found = json.loads(done.stdout)
        seconds = f"{found['clock']:.2f} | {found['processors']:.2f}"
        lines.append(f"| `{name}` | {side} | {batch} | {waiting} | {seconds} | {found['memory']:.0f} |")
        print("\n".join(lines if len(lines) == 3 else lines[-1:]), flush=True)
    command = " ".join(["python benchmarks/steps.py", *sys.argv[1:]])
    name = "_".join(map(str, ("steps_cpu", *cases[0]))) if options.name else "steps_cpu"
    beside = f", beside {options.neighbours} busy processes" if options.neighbours else ""
    name += "_busy" if beside else ""
    save(name, command, f"A training step, float32, median of {options.repeats}{beside}.\n\n" + "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("name", nargs="?", help="a network; the cases above when left out")
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--waiting", nargs="+", choices=WAITING, default=["short"])
    parser.add_argument("--neighbours", type=int, default=0)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.name, options.side, options.batch, options.repeats)))
    else:
        main(options)
