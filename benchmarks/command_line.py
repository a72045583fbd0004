"""Seconds of processor time until a command has answered:  python benchmarks/command_line.py [--record]

Each is run once to fill the caches of the disk and of the presets, then `--repeats` times; the median counts.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from _machine import add_record, save

TRAIN = [sys.executable, str(Path(__file__).parent.parent / "train.py")]
GSA = [sys.executable, "-m", "gsa"]
COMMANDS = {
    "gsa --help": [*GSA, "--help"],
    "gsa --version": [*GSA, "--version"],
    "gsa list": [*GSA, "list"],
    "python train.py --help": [*TRAIN, "--help"],
    "Tab": [*TRAIN, "--shell-completion", "query=bash"],
    "python train.py typo=1": [*TRAIN, "typo=1"],
    "python train.py model=typo": [*TRAIN, "model=typo"],
    "python train.py optimizer.lr=nan": [*TRAIN, "optimizer.lr=nan"],
    "python train.py data.batch_size=0": [*TRAIN, "data.batch_size=0"],
    "python train.py data=imagefolder data.root=nowhere": [*TRAIN, "data=imagefolder", "data.root=nowhere"],
    "python train.py +trainer.max_epoch=7": [*TRAIN, "+trainer.max_epoch=7"],
    "python train.py model.neighbourhood=4": [*TRAIN, "model.neighbourhood=4"],
    "python -c 'import torch'": [sys.executable, "-c", "import torch"],
    "python -c 'import lightning'": [sys.executable, "-c", "import lightning"],
}


def seconds(command: list[str]) -> float:
    """Of the processor, in the process of a command and in those that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    completing = {"COMP_LINE": "train.py model=digits_r", "COMP_POINT": "23"}
    subprocess.run(command, capture_output=True, env=os.environ | completing)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def table(repeats: int) -> str:
    """A row a command."""
    rows = ["| command | seconds |", "|---|---|"]
    for name, command in COMMANDS.items():
        seconds(command)
        rows.append(f"| `{name}` | {statistics.median(seconds(command) for _ in range(repeats)):.2f} |")
    return "\n".join(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_record(parser)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    found = table(options.repeats)
    print(found)
    save("command_line", " ".join(["python benchmarks/command_line.py", *sys.argv[1:]]), found)
