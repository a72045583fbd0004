"""Time and memory of a training step, or of a prediction, of networks by name.

    python benchmarks/steps.py                                    # what docs/pictures.md quotes
    python benchmarks/steps.py --predict                          # pictures a second
    python benchmarks/steps.py imagefolder_gsa --side 128 --batch 16 --repeats 5
    python benchmarks/steps.py imagefolder_gsa --side 64 --batch 16 --waiting default short --neighbours 2
    python benchmarks/steps.py imagefolder_gsa --side 96 --batch 16 --memory default kept
    python benchmarks/steps.py "pcam_*" --side 96 --save steps_pcam
    python benchmarks/steps.py "rotmnist_r4_sa neighbourhood=3,5,7,null" --side 28 --save steps_neighbourhoods

A step is forward, backward and Adam; a prediction is forward without gradients; float32, on the CPU. Each case runs in
a process of its own; the memory is the growth of its peak over the process with everything imported. Seconds of the
clock are those of an idle machine only; seconds of processors, all threads together, hold on a busy one too. The share
of sgemm is the arithmetic that the network needs at least, a second of processors, over that of a large product on one
thread of the same process. --compile goes through torch.compile.

Threads that wait for others spin for a short while and then sleep, as in `python train.py` (GOMP_SPINCOUNT=2000), or
longer, or as OpenMP has it by default, or sleep at once (OMP_WAIT_POLICY=PASSIVE); --neighbours are processes that each
keep a core busy meanwhile, and then it is chance how long a process waits: say a word twice for another. Memory that is
freed is kept for the next step, as in `python train.py`, or as glibc has it by default. Results go to
outputs/benchmarks.
"""

import argparse
import fnmatch
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product

import torch
import torch.nn.functional as F
from _flop import flop
from _machine import add_record, save
from _measure import sgemm_peak

import gsa

WAITING = {
    "default": {},
    "longer": {"GOMP_SPINCOUNT": "20000"},
    "short": {"GOMP_SPINCOUNT": "2000"},
    "asleep": {"OMP_WAIT_POLICY": "PASSIVE"},
}
MEMORY = {
    "default": {},
    "kept": {"MALLOC_MMAP_THRESHOLD_": str(64 * 2**20), "MALLOC_TRIM_THRESHOLD_": str(512 * 2**20)},
}
CASES = (("imagefolder_gsa", 64, 16), ("imagefolder_gsa", 224, 8), ("pcam_gsa", 96, 32))
PREDICTED = tuple(("imagefolder_gsa", side, batch) for side in (96, 224) for batch in (1, 64))


def work(row: str, side: int, batch: int, predict: bool, compiled: bool = False) -> Callable[[], None]:
    """A training step or a prediction of a network by name, with what differs from it."""
    torch.manual_seed(0)
    name, *overrides = row.split()
    network = gsa.create_model(name, **{key: _value(text) for key, _, text in (o.partition("=") for o in overrides)})
    network.train(not predict)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    images = torch.rand(batch, gsa.models.preset(name).keywords["in_channels"], side, side)
    labels = torch.randint(network.num_classes, (batch,))
    called = torch.compile(network) if compiled else network

    def step() -> None:
        if predict:
            with torch.no_grad():
                called(images)
            return
        optimizer.zero_grad()
        F.cross_entropy(called(images), labels).backward()
        optimizer.step()

    return step


def measure(row: str, side: int, batch: int, repeats: int, predict: bool, compiled: bool) -> dict[str, float]:
    """Medians of seconds by the clock and by processors, growth of the peak of memory in MB, share of sgemm."""
    step = work(row, side, batch, predict, compiled)
    before, clock, processors = peak(), [], []
    for _ in range(1 + repeats):
        starts = time.perf_counter(), time.process_time()
        step()
        clock.append(time.perf_counter() - starts[0])
        processors.append(time.process_time() - starts[1])
    found = {"clock": statistics.median(clock[1:]), "processors": statistics.median(processors[1:])}
    found["memory"] = (peak() - before) / 1e6
    count = flop(work(row, side, batch, predict))
    torch.set_num_threads(1)
    return found | {"of_sgemm": count / found["processors"] / sgemm_peak(torch.device("cpu"))}


def peak() -> int:
    """Bytes of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _value(text: str) -> str | int | None:
    return None if text == "null" else int(text) if text.isdigit() else text


def named(pattern: str) -> list[str]:
    """Networks whose names match, with every combination of values that commas part."""
    name, *overrides = pattern.split()
    names = fnmatch.filter(gsa.list_models(), name)
    if not names:
        raise SystemExit(f"no network is called {name}: `gsa list` has their names")
    choices = [
        [f"{key}={value}" for value in values.split(",")] for key, _, values in (o.partition("=") for o in overrides)
    ]
    return [" ".join(row) for row in product(names, *choices)]


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
    cases = PREDICTED if options.predict else CASES
    cases = [(name, options.side, options.batch) for name in named(options.name)] if options.name else cases
    lines = [
        "| network | side | batch | waiting | freed memory | clock, s | processors, s | pictures a second | of sgemm "
        "| memory, MB |",
        "|---" * 10 + "|",
    ]
    shared = [f"--repeats={options.repeats}", *(["--predict"] * options.predict), *(["--compile"] * options.compile)]
    for (name, side, batch), waiting, memory in product(cases, options.waiting, options.memory):
        command = [sys.executable, __file__, name, f"--side={side}", f"--batch={batch}", *shared]
        with neighbours(options.neighbours):
            environment = os.environ | WAITING[waiting] | MEMORY[memory]
            done = subprocess.run([*command, "--here"], stdout=subprocess.PIPE, text=True, check=True, env=environment)
        found = json.loads(done.stdout)
        cells = [f"`{name}`", side, batch, waiting, memory, f"{found['clock']:.3g}"]
        cells += [f"{found['processors']:.3g}", f"{batch / found['clock']:.0f}"]
        cells += [f"{found['of_sgemm']:.1%}", f"{found['memory']:.0f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
        print("\n".join(lines if len(lines) == 3 else lines[-1:]), flush=True)
    command = shlex.join(["python", "benchmarks/steps.py", *sys.argv[1:]])
    what = "predict_cpu" if options.predict else "steps_cpu"
    name = "_".join(map(str, (what, *cases[0]))) if options.name else what
    name = options.save or name + ("_compiled" if options.compile else "") + ("_busy" if options.neighbours else "")
    beside = f", beside {options.neighbours} busy processes" if options.neighbours else ""
    of = "prediction" if options.predict else "training step"
    save(name, command, f"A {of}, float32, median of {options.repeats}{beside}.\n\n" + "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("name", nargs="?", help="networks, and what differs from them; the cases when left out")
    parser.add_argument("--save", metavar="NAME", help="of the file of results")
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--waiting", nargs="+", choices=WAITING, default=["short"])
    parser.add_argument("--memory", nargs="+", choices=MEMORY, default=["kept"])
    parser.add_argument("--neighbours", type=int, default=0)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        found = measure(options.name, options.side, options.batch, options.repeats, options.predict, options.compile)
        print(json.dumps(found))
    else:
        main(options)
