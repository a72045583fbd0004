"""What a run says before it begins that it will take, beside what it takes.

    python benchmarks/estimates.py                                             # on digits, a few minutes
    python benchmarks/estimates.py --mnist path/to/folder/with/MNIST           # on RotMNIST as well

Each case is a run of its own with its data and recipe, of few epochs or batches. The ratio is estimate over outcome; it
holds on an idle machine. Results go to outputs/benchmarks.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from _machine import add_record, save

TRAIN = Path(__file__).parent.parent / "train.py"
QUIET = ("test=false", "report=false", "callbacks=none", "logger=none")
DIGITS = {name: ("trainer.max_epochs=5",) for name in ("digits_gsa", "digits_z2_sa", "digits_r4_sa", "digits_r8_sa")}
ROTMNIST = {
    name: ("trainer.max_epochs=1", "trainer.limit_train_batches=100", "trainer.limit_val_batches=3")
    for name in ("rotmnist_gsa", "rotmnist_positional", "rotmnist_r4_sa", "rotmnist_r4_cnn", "rotmnist_vit")
}


def outcome(name: str, options: tuple[str, ...]) -> dict[str, float]:
    """Estimate and truth of a run: seconds of training and validation, memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(TRAIN), f"model={name}", *QUIET, *options, f"hydra.run.dir={folder}/run"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        report = json.loads((Path(folder) / "run" / "report.json").read_text())
    return {
        "estimated seconds": report["estimate"]["seconds"],
        "seconds": report["train_seconds"],
        "estimated MB": report["estimate"]["memory_mb"],
        "MB": report["peak_memory_mb"],
    }


def main(options: argparse.Namespace) -> None:
    lines = ["| network | estimate, s | run, s | ratio | estimate, MB | run, MB | ratio |", "|---" * 7 + "|"]
    data = () if options.mnist is None else ("data.source=mnist", f"data.root={options.mnist}")
    for name, limits in (DIGITS | (ROTMNIST if data else {})).items():
        found = outcome(name, limits + (data if name in ROTMNIST else ()))
        pairs = (found["estimated seconds"], found["seconds"]), (found["estimated MB"], found["MB"])
        cells = [f"{guess:.0f} | {truth:.0f} | {guess / truth:.2f}" for guess, truth in pairs]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    command = "python benchmarks/estimates.py" + ("" if options.mnist is None else " --mnist path/to/folder/with/MNIST")
    save("estimates", command, "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--mnist", help="folder with MNIST's raw files")
    main(parser.parse_args())
