"""The first day on a GPU, in one command: right first, then how fast.

    python benchmarks/gpu.py --out FOLDER                        # less than nine minutes
    python benchmarks/gpu.py --out FOLDER --device cpu --quick   # whether the command works, in less than one

Every backend is compared with the reference in float64, output and gradients in all forms and dtypes; then steps are
timed: forward, backward and Adam, eager, compiled and with CUDA graphs (reduce-overhead), pictures on the device. An
epoch is that of 10 000 digits, or of 262 144 pictures of PatchCamelyon, told by the median step. Every case is written
to FOLDER/gpu.jsonl and FOLDER/gpu.md when it is done, so that a stop loses nothing; one that fails says why in its row.
The exit code is 1 where a number was wrong. FOLDER/gpu.png needs matplotlib.
"""

import argparse
import json
import resource
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from _correct import checks
from _machine import describe

import gsa

# Names with (preset, what is changed, side, pictures of an epoch).
NETWORKS = {
    "R4": ("rotmnist_r4_sa", {}, 28, 10_000),
    "R4_CNN": ("rotmnist_r4_cnn", {}, 28, 10_000),
    "rotmnist_gsa": ("rotmnist_gsa", {}, 28, 10_000),
    "R4 summed": ("rotmnist_r4_sa", {"form": "summed"}, 28, 10_000),
    "R8": ("rotmnist_r8_sa", {}, 28, 10_000),
    "R16": ("rotmnist_r16_sa", {}, 28, 10_000),
    "R4 global": ("rotmnist_r4_sa", {"neighbourhood": None}, 28, 10_000),
    "PCam R4": ("pcam_r4_sa", {}, 96, 262_144),
}
BATCHES = (8, 64, 512)
MODES = {"eager": None, "graphs": "reduce-overhead", "compiled": "default"}
REPEATS, SECONDS = 10, 3.0  # steps that are timed: as many as either allows, and one at least
PATIENCE = 60  # seconds that a case may take


class TimeIsUp(Exception):
    """A case has taken too long."""


class Folder:
    """Results, written as they come."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path, self.right, self.timed = path, [], []
        (path / "gpu.jsonl").write_text("")

    def add(self, kind: str, row: dict) -> None:
        """One case."""
        (self.right if kind == "right" else self.timed).append(row)
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


def machine() -> dict[str, str]:
    """Versions, and what it ran on."""
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


def make_step(name: str, batch: int, mode: str, device: str) -> Callable[[], None]:
    """A step of training on noise."""
    torch.manual_seed(0)
    preset, changes, side, _ = NETWORKS[name]
    network = gsa.create_model(preset, **changes).to(device)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    images = torch.rand(batch, gsa.models.preset(preset).keywords["in_channels"], side, side, device=device)
    labels = torch.randint(network.num_classes, (batch,), device=device)
    if MODES[mode]:
        network.compile(mode=MODES[mode])

    def step() -> None:
        if MODES[mode]:
            torch.compiler.cudagraph_mark_step_begin()
        optimizer.zero_grad()
        F.cross_entropy(network(images), labels).backward()
        optimizer.step()

    return step


def seconds_of(step: Callable[[], None], device: str) -> float:
    """The median of some steps, after three that do not count."""

    def timed() -> float:
        start = time.perf_counter()
        step()
        if device != "cpu":
            torch.cuda.synchronize(device)
        return time.perf_counter() - start

    first = [timed() for _ in range(3 if device != "cpu" else 1)]
    found: list[float] = []
    while len(found) < REPEATS and sum(found) < SECONDS:
        found.append(timed())
    return statistics.median(found or first)


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


def draw(folder: Folder) -> None:
    """Pictures a second against the batch, a line for each network and mode."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        print("matplotlib is not installed: no picture")
        return
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot(xlabel="batch", ylabel="pictures a second", xscale="log", yscale="log")
    styles, good = dict(zip(MODES, ("-", "--", ":"), strict=True)), [row for row in folder.timed if "step" in row]
    for colour, name in enumerate(NETWORKS):
        for mode, style in styles.items():
            rows = [row for row in good if (row["network"], row["mode"]) == (name, mode)]
            if rows:
                points = sorted((row["batch"], row["batch"] / row["step"]) for row in rows)
                axes.plot(*zip(*points, strict=True), style, marker="o", color=f"C{colour}", label=f"{name}, {mode}")
    if good:
        axes.legend(fontsize="small", bbox_to_anchor=(1, 1))
    figure.savefig(folder.path / "gpu.png", dpi=120)


def cases(quick: bool) -> Iterator[tuple[str, int, str]]:
    """Networks, batches and modes, what matters most first."""
    if quick:
        yield from (("R4_CNN", 2, "eager"), ("R4", 2, "eager"))
        return
    for mode in MODES:
        for batch in BATCHES:
            yield from ((name, batch, mode) for name in NETWORKS)


def main(options: argparse.Namespace) -> int:
    folder, end = Folder(options.out), time.monotonic() + options.minutes * 60
    for row in checks(options.device, options.quick):
        folder.add("right", row)
        if not row["right"]:
            print(_of_right(row), flush=True)
        if end - time.monotonic() < options.minutes * 40:
            break  # a third of the time
    for case in cases(options.quick):
        left = end - time.monotonic()
        if left < 5:
            print("the time is up")
            break
        folder.add("timed", measure(*case, options.device, min(left, PATIENCE)))
        print(_of_timed(folder.timed[-1]), flush=True)
    draw(folder)
    wrong = sum(not row["right"] for row in folder.right)
    print(f"{wrong} of {len(folder.right)} comparisons are wrong; {folder.path / 'gpu.md'}")
    return int(wrong > 0 or not folder.right)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="a folder for the results")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--minutes", type=float, default=8.5)
    parser.add_argument("--quick", action="store_true", help="few cases")
    sys.exit(main(parser.parse_args()))
