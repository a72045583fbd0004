"""Time and memory of a training step of the RotMNIST networks, against the direct evaluation of attention.

    python benchmarks/models.py                        # R4, summed form (the paper's), 5×5, batch 8, its dropout
    python benchmarks/models.py --group R8 --batch 2 --form regular
    python benchmarks/models.py --window global --without direct
    python benchmarks/models.py --all                  # every case that the README quotes, and more on a GPU
    python benchmarks/models.py --form regular --without direct --authors path/to/their/clone

--authors takes in the network of https://github.com/dwromero/g_selfatt, which knows the summed form alone, in place of
the direct evaluation or beside it.

A step is forward, backward and Adam. All evaluations run in this process, in turn, for the times; each runs in a fresh
process for the memory, which is the growth of the peak over the process with everything imported, and what of it is
in use after two steps: the rest is freed memory that the C library keeps. On a GPU the time of an epoch of 10 000
pictures, resident on it, is given as well. The share of sgemm is the arithmetic that the formula
needs at least, a second, over that of a large float32 matrix product in the same process, so that machines can be
compared. Results go to outputs/benchmarks.
"""

import argparse
import json
import resource
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import asdict

import torch
import torch.nn.functional as F
from _authors import authors_network
from _flop import flop
from _machine import add_record, describe, results, save
from _measure import memory_growth, memory_in_use, sgemm_peak, side_by_side
from direct import everywhere

import gsa

EPOCH = 10_000
CASES = (
    "--group R4 --form summed --batch 8",
    "--group R4 --form regular --batch 8",
    "--group R8 --form summed --batch 2",
    *(
        f"{case} --form {form} --batch 8 --without direct tiled"
        for case in ("--group R16", "--group R4 --window global")
        for form in ("summed", "regular")
    ),
)
ON_GPU = (
    "--group R4 --form summed --batch 64 --without direct",
    "--group R16 --form summed --batch 64 --without direct tiled",
    "--group R4 --form summed --batch 64 --window global --without direct tiled",
)


def make_calls(options: argparse.Namespace, evaluation: str) -> dict:
    """What to call for a forward pass without gradients, and for a training step, with one evaluation of attention."""
    torch.manual_seed(0)
    window = None if options.window == "global" else int(options.window)
    if evaluation == "authors":
        network = authors_network(options.authors, options.group, window, options.device)
    else:
        network = gsa.create_model("rotmnist_r4_sa", group=options.group, form=options.form, neighbourhood=window)
    network.to(options.device)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    images = torch.rand(options.batch, 1, 28, 28, device=options.device)
    labels = torch.randint(10, (options.batch,), device=options.device)

    def attention():
        if evaluation in ("authors", None):
            return nullcontext()
        return everywhere() if evaluation == "direct" else gsa.ops.use(evaluation)

    def forward() -> None:
        with attention(), torch.no_grad():
            network(images)

    def step() -> None:
        with attention():
            optimizer.zero_grad()
            F.cross_entropy(network(images), labels).backward()
            optimizer.step()

    return {"forward": forward, "training step": step}


def evaluations(options: argparse.Namespace) -> list[str]:
    slow = ["authors", "direct"] if options.authors else ["direct"]
    names = slow + [name for name in gsa.ops.backends(options.device) if name != "reference"]
    return [name for name in names if name not in options.without]


def growth_in_a_fresh_process(options: argparse.Namespace, evaluation: str) -> tuple[float | None, float | None]:
    """Growth of the peak over two training steps, and of what is in use after them, in MB."""
    keys = ("group", "form", "window", "batch", "device", *(["authors"] if options.authors else []))
    arguments = [f"--{key}={getattr(options, key)}" for key in keys]
    command = [sys.executable, __file__, *arguments, f"--growth-of={evaluation}"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_growth(options: argparse.Namespace) -> None:
    """What the fresh process does."""
    step = make_calls(options, options.growth_of)["training step"]
    if options.device == "cuda":
        step()
        print(json.dumps((memory_growth(step), None)))
        return
    unit = 1 if sys.platform == "darwin" else 1024
    before, in_use = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, memory_in_use()
    step()
    step()
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit / 1e6
    print(json.dumps((peak, None if in_use is None else memory_in_use() - in_use)))


def measure(options: argparse.Namespace) -> list[dict]:
    """One row for each pass and evaluation of one case."""
    names = evaluations(options)
    # First of all: a child starts with its parent's peak, so the parent must not have worked yet.
    growth = {name: growth_in_a_fresh_process(options, name) for name in names}
    calls = {name: make_calls(options, name) for name in names}
    peak = sgemm_peak(torch.device(options.device))
    rows = []
    for part in ("forward", "training step"):
        count = flop(calls[names[-1]][part])
        times = side_by_side({name: calls[name][part] for name in names}, options.repeats)
        for name in names:
            row = {"group": options.group, "form": options.form, "window": options.window, "batch": options.batch}
            row |= {"pass": part, "evaluation": name, "seconds": asdict(times[name])}
            row |= {"flop": count, "of_sgemm": count / times[name].median / peak}
            grown, after = growth[name] if part != "forward" else (None, None)
            rows.append(row | {"memory_mb": grown, "memory_after_mb": after})
    return rows


def markdown(rows: list[dict]) -> str:
    lines = [
        "| group | form | window | batch | pass | evaluation | seconds | min – max | times faster | of sgemm "
        "| memory, MB | in use after, MB |",
        "|---" * 12 + "|",
    ]
    slowest = {}
    for row in rows:
        s = row["seconds"]
        key = tuple(row[name] for name in ("group", "form", "window", "batch", "pass"))
        if row["evaluation"] in ("authors", "direct"):
            slowest.setdefault(key, s["median"])
        faster = f"{slowest[key] / s['median']:.1f}" if key in slowest else ""
        memory = " | ".join("" if row[of] is None else f"{row[of]:.0f}" for of in ("memory_mb", "memory_after_mb"))
        window = row["window"] if row["window"] == "global" else f"{row['window']}×{row['window']}"
        form = "summed" if row["evaluation"] == "authors" else row["form"]
        lines.append(
            f"| {row['group']} | {form} | {window} | {row['batch']} | {row['pass']} | {row['evaluation']} | "
            f"{s['median']:.3f} | {s['least']:.3f} – {s['most']:.3f} | {faster} | {row['of_sgemm']:.1%} | {memory} |"
        )
    if torch.cuda.is_available():
        for row in rows:
            if row["pass"] != "forward" and row["batch"] >= 64:
                seconds = row["seconds"]["median"] * EPOCH / row["batch"]
                lines += [
                    "",
                    f"{row['group']}, {row['window']}, {row['evaluation']}: an epoch of {EPOCH} in {seconds:.1f} s.",
                ]
    return "\n".join(lines)


def main(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    cases = [options]
    if options.all:
        kinds = CASES + (ON_GPU if options.device == "cuda" else ())
        shared = [f"--device={options.device}", f"--repeats={options.repeats}"]
        cases = [parser.parse_args([*case.split(), *shared]) for case in kinds]
    rows = []
    for case in cases:
        if options.all:  # each in a process of its own, see `measure`
            flags = [
                f"--{key}={getattr(case, key)}" for key in ("group", "form", "window", "batch", "device", "repeats")
            ]
            command = [sys.executable, __file__, *flags, "--without", *case.without, "--as-json"]
            rows += json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        else:
            rows += measure(case)
        if not options.as_json:
            print(markdown(rows), flush=True)
    if options.as_json:
        print(json.dumps(rows))
        return
    kind = "gpu" if options.device == "cuda" else "cpu"
    name = (
        f"models_{kind}"
        if options.all
        else f"models_{kind}_{options.group}_{options.form}_{options.window}_{options.batch}"
    )
    command = " ".join(["python benchmarks/models.py", *sys.argv[1:]])
    head = f"RotMNIST networks on 28×28 pictures, dropout 0.1, float32; median of {options.repeats}.\n\n"
    save(name.lower(), command, head + markdown(rows))
    data = {"command": command, "machine": describe(), "rows": rows}
    (results() / f"{name.lower()}.json").write_text(json.dumps(data, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--group", default="R4")
    parser.add_argument("--form", default="summed", choices=gsa.ops.FORMS)
    parser.add_argument("--window", default="5", help="odd number of pixels, or global")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without", nargs="*", default=[], help="evaluations to leave out: direct, tiled, …")
    parser.add_argument("--authors", metavar="PATH", help="clone of their code, to be timed in the same run")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--growth-of", help=argparse.SUPPRESS)
    parser.add_argument("--as-json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.growth_of:
        print_growth(options)
    else:
        main(parser, options)
