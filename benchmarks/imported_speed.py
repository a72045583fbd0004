"""What it costs to replace the convolutions of torchvision's ResNet-18, or to pool it over four turns.

    python benchmarks/imported_speed.py
    python benchmarks/imported_speed.py --sides 64 --batches 1

All of a row run in this process, in turn.
"""

import argparse
import copy
import sys
from collections.abc import Callable
from functools import partial

import torch
from _machine import add_record, save
from _measure import side_by_side
from torch import Tensor, nn
from torchvision.models import resnet18

import gsa


def predict(network: nn.Module, images: Tensor) -> None:
    with torch.inference_mode():
        network.eval()(images)


def step(network: nn.Module, images: Tensor) -> None:
    """Forward and backward."""
    network.zero_grad()
    network.train()(images).square().mean().backward()


def main(options: argparse.Namespace) -> None:
    torch.manual_seed(0)
    plain = resnet18(num_classes=10).to(options.device)
    networks = {
        "as it is": plain,
        "convolutions replaced": gsa.nn.replace_convolutions(copy.deepcopy(plain), "R4"),
        "pooled over four turns": gsa.nn.OrbitPooling(copy.deepcopy(plain), "R4"),
    }
    lines = ["| | " + " | ".join(f"{name}, ms" for name in networks) + " |", "|---" * (1 + len(networks)) + "|"]
    passes: dict[str, Callable[[nn.Module, Tensor], None]] = {"prediction": predict, "training step": step}
    for side in options.sides:
        for batch in options.batches:
            images = torch.randn(batch, 3, side, side, device=options.device)
            for name, work in passes.items():
                if batch == 1 and work is step:
                    continue
                times = side_by_side({of: partial(work, it, images) for of, it in networks.items()}, options.repeats)
                base = times["as it is"].median
                cells = [f"{1e3 * time.median:.1f} ({time.median / base:.1f}×)" for time in times.values()]
                lines.append(f"| {name} of {batch}, {side}×{side} pixels | " + " | ".join(cells) + " |")
                print(lines[-1], flush=True)
    command = " ".join(["python benchmarks/imported_speed.py", *sys.argv[1:]])
    save(options.save, command, "\n".join([*lines, "", f"Medians of {options.repeats} turns."]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--sides", type=int, nargs="+", default=[64, 224])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--save", metavar="NAME", default="imported_speed", help="of the results")
    main(parser.parse_args())
