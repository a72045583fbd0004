"""Trained weights of torchvision's ResNet-18, as they are, with its convolutions replaced, and pooled over four turns.

    python benchmarks/imported_weights.py

On the digits of `imported_layer.py`. Where a network is trained further, the weights that are best on validation are
tested, once.
"""

import argparse
import copy
import sys
from collections.abc import Iterator

import lightning
from _machine import add_record, save
from imported_layer import after, before, tested, trained
from table import spread

import gsa
from gsa.data import DigitsDataModule


def rows(seed: int, epochs: int, more: int, rate: float) -> Iterator[tuple[str, dict[str, float]]]:
    """What was done, and what the test says of it."""
    lightning.seed_everything(seed, verbose=False)
    data = DigitsDataModule(batch_size=32, seed=seed, size=17)
    network = before("resnet18")
    trained(network, data, epochs, rate)
    yield f"trained for {epochs} epochs", tested(network, data)
    pooled = gsa.nn.OrbitPooling(copy.deepcopy(network), "R4", kind="mean")
    yield "the same weights, the mean of its answers to four turns", tested(pooled, data)
    replaced = gsa.nn.replace_convolutions(copy.deepcopy(network), "R4")
    yield "the same weights, convolutions replaced", tested(replaced, data)
    trained(replaced, data, 1, 0.0)
    yield "… and its batch norms have seen an epoch", tested(replaced, data)
    trained(replaced, data, more, rate / 4)
    yield f"… and it is trained for {more} more", tested(replaced, data)
    scratch = after("resnet18", "zeros")
    trained(scratch, data, more, rate)
    yield f"convolutions replaced, trained for {more} epochs from scratch", tested(scratch, data)


def main(options: argparse.Namespace) -> None:
    runs = [dict(rows(seed, options.epochs, options.more, options.rate)) for seed in range(options.seeds)]
    lines = ["| `resnet18` | test, % | logits change under a quarter turn |", "|---|---|---|"]
    for name in runs[0]:
        error = max(run[name]["error"] for run in runs)
        lines.append(f"| {name} | {spread([run[name]['test'] for run in runs])} | {error:.1e} |")
    lines += ["", f"Mean ± standard deviation over {options.seeds} seeds."]
    command = " ".join(["python benchmarks/imported_weights.py", *sys.argv[1:]])
    save("imported_weights", command, "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--more", type=int, default=4)
    parser.add_argument("--rate", type=float, default=0.004)
    main(parser.parse_args())
