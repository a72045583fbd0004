"""Networks that lie too close for 2 000 digits: the same validation digits at other angles, alone and together.

    python benchmarks/angles.py multirun/mine/* --save mine
    python benchmarks/angles.py multirun/mine/* --test --save mine_together    # the test digits, once all is chosen

Every folder is that of a run on turned MNIST (data=rotmnist data.source=mnist), whose digits can be had upright and
turned anew. Networks, all and any two, are together where their log-probabilities are added up: what that brings is the
part of the error which is chance, and differs from training to training.
"""

import argparse
import itertools
import statistics
import sys
from pathlib import Path

import torch
from _machine import add_record, save
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor, nn

import gsa
from gsa.data import RotMNISTDataModule, turned_mnist


def digits(folders: list[Path], angles: int | None) -> tuple[list[Tensor], Tensor]:
    """The validation digits in so many other turns, each [2000, 1, 28, 28], and their labels; of None the test digits.

    Raises:
        ValueError: runs on other data, or on different splits.
    """
    data = [instantiate(OmegaConf.load(folder / "config.yaml").data, _convert_="all") for folder in folders]
    for folder, one in zip(folders, data, strict=True):
        if not isinstance(one, RotMNISTDataModule) or one.official or one.clutter or one.occlusion:
            raise ValueError(f"expected runs on turned MNIST (data.source=mnist), but {folder} is none")
    splits = {(one.root, one.split_seed) for one in data}
    if len(splits) > 1:
        raise ValueError(f"expected runs on one split, but got those of {sorted(map(str, splits))}")
    ((root, seed),) = splits
    start = data[0].sizes["train"]
    end = start + data[0].sizes["val"]
    if angles is None:
        pictures, labels = turned_mnist(root, seed)
        return [pictures[end:].float()], labels[end:]
    part = slice(start, end)
    turned = [turned_mnist(root, seed, angle_seed=1 + angle) for angle in range(angles)]
    return [pictures[part].float() for pictures, _ in turned], turned[0][1][part]


@torch.inference_mode()
def log_probabilities(network: nn.Module, pictures: Tensor) -> Tensor:
    """[N, 10], a few hundred pictures at once."""
    batches = (network(network.pictures.normalise(batch)) for batch in pictures.split(250))
    return torch.cat(list(batches)).log_softmax(1)


def accuracy(answers: list[Tensor], labels: Tensor) -> float:
    """In percent, over all angles."""
    return 100 * statistics.mean((answer.argmax(1) == labels).double().mean().item() for answer in answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("folders", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--angles", type=int, default=9, help="how many times the digits are turned anew")
    parser.add_argument("--test", action="store_true", help="the test digits of the split itself in their place")
    parser.add_argument("--save", metavar="NAME", default="angles", help="of the table that is written")
    options = parser.parse_args()
    if options.angles < 1:
        parser.error(f"--angles must be at least 1, but got {options.angles}")
    try:
        pictures, labels = digits(options.folders, None if options.test else options.angles)
    except ValueError as error:
        raise SystemExit(f"angles.py: {error}") from None
    seen = f"{len(labels):,} " + ("test digits" if options.test else f"digits at {options.angles} other angles")
    lines = [f"| run | parameters | {seen}, % |", "|---|---|---|"]
    print("\n".join(lines))
    answers = {}
    for folder in options.folders:
        network = gsa.load(folder)
        answers[folder] = [log_probabilities(network, turned) for turned in pictures]
        count = sum(parameter.numel() for parameter in network.parameters())
        lines.append(f"| {folder.name} | {count:,} | {accuracy(answers[folder], labels):.2f} |")
        print(lines[-1], flush=True)
    for many in sorted({2, len(answers)} - {1}):
        together = [
            accuracy([sum(angle) for angle in zip(*(answers[one] for one in some), strict=True)], labels)
            for some in itertools.combinations(answers, many)
        ]
        if together:
            lines.append(f"| {many} together, on average | | {statistics.mean(together):.2f} |")
            print(lines[-1])
    save(options.save, " ".join(["python benchmarks/angles.py", *sys.argv[1:]]), "\n".join(lines))


if __name__ == "__main__":
    main()
