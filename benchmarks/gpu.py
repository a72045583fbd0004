"""The first day on a GPU, in one command: right first, then how fast.

    python benchmarks/gpu.py --out FOLDER                        # less than nine minutes
    python benchmarks/gpu.py --out FOLDER --device cpu --quick   # whether the command works, in less than one
    python benchmarks/gpu.py --out FOLDER --authors path/to/their/clone

Every backend is compared with the reference in float64, output and gradients in all forms and dtypes; then steps are
timed: forward, backward and Adam, eager, as one CUDA graph, compiled, and compiled with CUDA graphs (reduce-overhead),
pictures on the device; and on more and more devices, where there are several, a batch of 64 each. --authors times the
network of https://github.com/dwromero/g_selfatt beside ours, eager: that of R4 summed, in the mixed precision that it
asks for on a GPU. Of each kernel there are the registers, and the warps that a multiprocessor holds at once. An epoch
is that of 10 000 digits, or of 262 144 pictures of PatchCamelyon, told by the median step. Every case is written to
FOLDER/gpu.jsonl and FOLDER/gpu.md when it is done, so that a stop loses nothing; one that fails says why in its row.
The exit code is 1 where a number was wrong. FOLDER/gpu.png needs matplotlib.
"""

import argparse
import json
import resource
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import product
from pathlib import Path

import torch
from _authors import authors_network
from _correct import checks
from _machine import describe
from _scaling import device_counts, pictures_a_second
from _training_step import MODES, NETWORKS, make_step, seconds_of

BATCHES = (8, 64, 512)
LATE = ("R8", "R16")  # whose kernels take a minute to compile
FIRST = ("eager", "one graph")
SCALED = ("R4", "rotmnist_gsa")  # on several devices
LISTED = ("R4", "R4 summed")  # of which the kernels are told
THEIRS = "the authors' R4"
PATIENCE, A_COUNT = 60, 20  # seconds that a case may take, and that are kept for a number of devices


class TimeIsUp(Exception):
    """A case has taken too long."""


class Folder:
    """Results, written as they come."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.right: list[dict] = []
        self.timed: list[dict] = []
        self.scaled: list[dict] = []
        self.kernels: list[dict] = []
        (path / "gpu.jsonl").write_text("")

    def add(self, kind: str, row: dict) -> None:
        """One case."""
        kept = {"right": self.right, "timed": self.timed, "scaled": self.scaled, "kernel": self.kernels}
        kept[kind].append(row)
        with (self.path / "gpu.jsonl").open("a") as lines:
            lines.write(json.dumps({"kind": kind, **row}) + "\n")
        (self.path / "gpu.md").write_text(self.text())

    def text(self) -> str:
        """The tables."""
        wrong = [row for row in self.right if not row["right"]]
        lines = [f"`{' '.join(['python', *sys.argv])}`", "", ", ".join(f"{k} {v}" for k, v in machine().items()), ""]
        lines += [f"{len(self.right) - len(wrong)} of {len(self.right)} comparisons with the reference are right.", ""]
        if self.right:
            lines += ["| form | map | dropout | dtype | backend | largest error | of | budget | |"]
            lines += ["|---|---|---|---|---|---|---|---|---|"]
            lines += [_of_right(row) for row in wrong + _worst(self.right)]
        if self.timed:
            lines += ["", "| network | batch | mode | step, ms | epoch, s | memory, MB |", "|---|---|---|---|---|---|"]
            lines += [_of_timed(row) for row in self.timed]
        if self.scaled:
            lines += [
                "",
                "| network, batch of each | devices | pictures a second | of one, times |",
                "|---|---|---|---|",
            ]
            lines += [_of_scaled(row, self.scaled) for row in self.scaled]
        if self.kernels:
            lines += [
                "",
                "| network | kernel | sm | registers | spilled, B | shared, B | warps at once |",
                "|---" * 7 + "|",
            ]
            lines += [_of_kernel(row) for row in self.kernels]
        return "\n".join(lines) + "\n"


def _worst(rows: list[dict]) -> list[dict]:
    """Of the right ones, the one nearest to its budget for each backend and dtype."""
    best: dict[tuple, dict] = {}
    for row in (row for row in rows if row["right"]):
        key = row["backend"], row["dtype"]
        best[key] = max(best.get(key, row), row, key=lambda other: other["error"])
    return list(best.values())


def _of_right(row: dict) -> str:
    error = "—" if row["error"] is None else f"{row['error']:.1e}"
    mark = "right" if row["right"] else "**wrong**"
    start = f"| {row['form']} | {row['map']} | {row['dropout']} | {row['dtype']} | {row['backend']} "
    return start + f"| {error} | {row['of']} | {row['budget']:.0e} | {mark} |"


def _of_timed(row: dict) -> str:
    start = f"| {row['network']} | {row['batch']} | {row['mode']} | "
    if row.get("failed"):
        return f"{start}{row['failed']} | | |"
    return f"{start}{row['step'] * 1e3:.2f} | {row['epoch']:.1f} | {row['memory']:.0f} |"


def _of_scaled(row: dict, rows: list[dict]) -> str:
    start = f"| {row['network']}, {row['batch']} | {row['devices']} | "
    if row.get("failed"):
        return f"{start}{row['failed']} | |"
    alike = (other for other in rows if (other["network"], other["devices"]) == (row["network"], 1))
    one = next(alike, {}).get("rate")
    times = f"{row['rate'] / one:.2f}" if one else "—"
    return f"{start}{row['rate']:,.0f} | {times} |"


def _of_kernel(row: dict) -> str:
    if row.get("failed"):
        return f"| {row['failed']} | | | | | | |"
    return "| " + " | ".join(str(cell) for cell in row.values()) + " |"


@cache
def machine() -> dict[str, str]:
    """Versions, and what it ran on; measured once, for a product of large matrices takes a second."""
    try:
        from triton import __version__ as triton
    except ModuleNotFoundError:
        triton = "none"
    return describe() | {"triton": triton, "cuda": str(torch.version.cuda)}


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """TimeIsUp where what is done inside takes longer."""

    def stop(*_: object) -> None:
        raise TimeIsUp(f"longer than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def measure(name: str, batch: int, mode: str, device: str, seconds: float) -> dict:
    """The row of a case; why it could not be measured, where it could not."""
    row: dict = {"network": name, "batch": batch, "mode": mode}
    if MODES[mode]:
        torch.compiler.reset()
    if device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    try:
        with at_most(seconds):
            row["step"] = seconds_of(make_step(name, batch, mode, device), device)
    except Exception as error:
        return row | {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:150]}
    row["epoch"] = row["step"] * -(-NETWORKS[name][3] // batch)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # on Linux; of the process so far
    row["memory"] = (peak if device == "cpu" else torch.cuda.max_memory_allocated(device)) / 1e6
    return row


def scale(name: str, batch: int, count: int, device: str, seconds: float) -> dict:
    """The row of so many devices; why it could not be measured, where it could not."""
    row: dict = {"network": name, "batch": batch, "devices": count}
    try:
        row["rate"] = pictures_a_second(name, batch, count, device, seconds)
    except Exception as error:
        return row | {"failed": f"{type(error).__name__}: {error}".strip().splitlines()[0][:150]}
    return row


def list_kernels(folder: Folder, options: argparse.Namespace, seconds: float = 2 * A_COUNT) -> None:
    """What the kernels need of a multiprocessor; why that is not known, where it is not."""
    try:
        from _occupancy import occupancy

        with at_most(seconds):
            for row in occupancy(LISTED[:1] if options.quick else LISTED, options.device):
                folder.add("kernel", row)
    except Exception as error:
        folder.add("kernel", {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:150]})


def draw(folder: Folder) -> None:
    """Pictures a second against the batch, a line for each network and mode."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        print("matplotlib is not installed: no picture")
        return
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot(xlabel="batch", ylabel="pictures a second", xscale="log", yscale="log")
    styles = dict(zip(MODES, ("-", "-.", (0, (3, 1, 1, 1)), "--", ":"), strict=True))
    good = [row for row in folder.timed if "step" in row]
    for colour, name in enumerate(NETWORKS):
        for mode, style in styles.items():
            rows = [row for row in good if (row["network"], row["mode"]) == (name, mode)]
            if rows:
                points = sorted((row["batch"], row["batch"] / row["step"]) for row in rows)
                axes.plot(*zip(*points, strict=True), style, marker="o", color=f"C{colour}", label=f"{name}, {mode}")
    if good:
        axes.legend(fontsize="small", bbox_to_anchor=(1, 1))
    figure.savefig(folder.path / "gpu.png", dpi=120)


def cases(quick: bool, names: Collection[str] | None = None) -> Iterator[tuple[str, int, str]]:
    """Networks, batches and modes, what matters most first."""
    chosen = [name for name in NETWORKS if names is None or name in (*names, THEIRS)]
    if quick:
        yield from ((name, 2, "eager") for name in ("R4_CNN", "R4", THEIRS) if name in chosen)
        return
    for modes in (FIRST, [mode for mode in MODES if mode not in FIRST]):
        for late in (False, True):
            for mode, batch in product(modes, BATCHES):
                named = [name for name in chosen if (name in LATE) is late]
                yield from ((name, batch, mode) for name in named if mode == "eager" or name != THEIRS)


def main(options: argparse.Namespace) -> int:
    folder, end = Folder(options.out), time.monotonic() + options.minutes * 60
    if options.device.startswith("cuda:"):
        torch.cuda.set_device(options.device)  # where streams and graphs are made
    if options.authors:
        NETWORKS[THEIRS] = (partial(authors_network, options.authors, "R4", 5), {}, 28, 10_000)
    for row in checks(options.device, options.quick):
        folder.add("right", row)
        if not row["right"]:
            print(_of_right(row), flush=True)
        if end - time.monotonic() < options.minutes * 40:
            break  # a third of the time
    counts = list(device_counts(options.device))
    scaled = [(name, count) for name in SCALED for count in counts] if len(counts) > 1 else []
    kernels = min(2 * A_COUNT, options.minutes * 20)  # seconds: a third of the time at most
    for case in cases(options.quick, options.networks):
        left = end - kernels - len(scaled) * A_COUNT - time.monotonic()
        if left < 5:
            print("the time is up")
            break
        folder.add("timed", measure(*case, options.device, min(left, PATIENCE)))
        print(_of_timed(folder.timed[-1]), flush=True)
    list_kernels(folder, options, kernels)
    for name, count in scaled:
        seconds = max(end - time.monotonic(), A_COUNT)
        folder.add("scaled", scale(name, 2 if options.quick else 64, count, options.device, seconds))
        print(_of_scaled(folder.scaled[-1], folder.scaled), flush=True)
    draw(folder)
    wrong = sum(not row["right"] for row in folder.right)
    print(f"{wrong} of {len(folder.right)} comparisons are wrong; {folder.path / 'gpu.md'}")
    return int(wrong > 0 or not folder.right)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="a folder for the results")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--minutes", type=float, default=8.5)
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), help="all, unless some are named")
    parser.add_argument("--authors", metavar="PATH", help="clone of their code, to be timed beside ours")
    parser.add_argument("--quick", action="store_true", help="few cases")
    sys.exit(main(parser.parse_args()))
