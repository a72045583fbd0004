"""A class for every pixel: a U-Net as it is, with its convolutions replaced, and pooled over four turns; and ours.

    python benchmarks/segmentation.py
    python benchmarks/segmentation.py --noise 0.3 --save segmentation_clear

Pictures of 48×48 pixels with discs, rings and bars at any angle, in noise; all networks see the same ones, in as many
steps. The score is the mean over the three classes of their IoU (intersection over union), on 128 other pictures.
"""

import argparse
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from _machine import add_record, save
from table import spread
from torch import Tensor, nn

import gsa
from gsa.symmetry import equivariance_error
from gsa.training import parameter_groups, warmup_cosine

SIDE, SHAPES = 48, 6


class UNet(nn.Module):
    """[B, 1, H, W] → logits [B, 4, H, W]: two convolutions at each of three scales, down and up again."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        first, second, third = width, 2 * width, 4 * width
        self.down = nn.ModuleList([_twice(1, first), _twice(first, second), _twice(second, third)])
        self.up = nn.ModuleList([_twice(third + second, second), _twice(second + first, first)])
        self.head = nn.Conv2d(first, 4, 1)

    def forward(self, images: Tensor) -> Tensor:
        first = self.down[0](images)
        second = self.down[1](F.max_pool2d(first, 2))
        joined = self.up[0](torch.cat((second, _twice_as_large(self.down[2](F.max_pool2d(second, 2)))), dim=1))
        return self.head(self.up[1](torch.cat((first, _twice_as_large(joined)), dim=1)))


class Ours(nn.Module):
    """[B, 1, 48, 48] → logits [B, 4, 48, 48]: features of an attention network, in every pose, joined."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = gsa.create_model(
            "rotmnist_gsa",
            group="R4",
            features_only=True,
            stem_crop=0,
            stem_pool=0,
            blocks=(1, 1, 1),
            pools=(2, 2, 0),
            crops=None,
            neighbourhoods=None,
            content_heads=None,
            border="zeros",
        )
        self.head = nn.Conv3d(sum(self.backbone.channels), 4, 1)

    def forward(self, images: Tensor) -> Tensor:
        features = [
            feature.repeat_interleave(SIDE // feature.shape[-1], -1).repeat_interleave(SIDE // feature.shape[-1], -2)
            for feature in self.backbone(images)
        ]
        return self.head(torch.cat(features, dim=1)).amax(2)


WAYS: dict[str, Callable[[], nn.Module]] = {
    "a U-Net": UNet,
    "its convolutions replaced": lambda: gsa.nn.replace_convolutions(UNet(), "R4"),
    "the mean of its answers to four turns": lambda: gsa.nn.OrbitPooling(UNet(), "R4", kind="mean"),
    "`rotmnist_gsa` with features of all scales joined": Ours,
}


def drawn(count: int, noise: float) -> tuple[Tensor, Tensor]:
    """Pictures [count, 1, 48, 48], and the classes of their pixels: ground, disc, ring or bar; the last is on top."""
    y, x = torch.meshgrid(torch.arange(SIDE) - SIDE / 2 + 0.5, torch.arange(SIDE) - SIDE / 2 + 0.5, indexing="ij")
    classes = torch.zeros(count, SIDE, SIDE, dtype=torch.int64)
    for _ in range(SHAPES):
        right, down, turn = ((torch.rand(count, 1, 1) - 0.5) * size for size in (SIDE, SIDE, 2 * torch.pi))
        size, kind = 3 + 3 * torch.rand(count, 1, 1), torch.randint(1, 4, (count, 1, 1))
        along = (x - right) * turn.cos() + (y - down) * turn.sin()
        across = (y - down) * turn.cos() - (x - right) * turn.sin()
        distance = (along.square() + across.square()).sqrt()
        inside = {1: distance < size, 2: (distance < size) & (distance > size / 2)}
        inside[3] = (along.abs() < 1.5 * size) & (across.abs() < size / 2)
        for which, pixels in inside.items():
            classes = torch.where(pixels & (kind == which), which, classes)
    return ((classes > 0) + noise * torch.randn(count, SIDE, SIDE))[:, None], classes


def measure(make: Callable[[], nn.Module], seed: int, noise: float, steps: int, rate: float) -> dict[str, float]:
    """Train, and test once."""
    torch.manual_seed(seed)
    network = make()
    optimizer = torch.optim.AdamW(parameter_groups(network), rate, weight_decay=0.01)
    schedule = warmup_cosine(optimizer, steps)
    torch.manual_seed(1000 + seed)  # the same pictures for all
    start = time.perf_counter()
    for _ in range(steps):
        pictures, classes = drawn(16, noise)
        optimizer.zero_grad()
        F.cross_entropy(network(pictures), classes).backward()
        optimizer.step()
        schedule.step()
    seconds = (time.perf_counter() - start) / steps
    torch.manual_seed(999)
    pictures, classes = drawn(128, noise)
    with torch.no_grad():
        found = network.eval()(pictures).argmax(1)
    shares = [((found == k) & (classes == k)).sum() / ((found == k) | (classes == k)).sum() for k in (1, 2, 3)]
    error = max(equivariance_error(network, pictures[:8], "R4").values())
    parameters = sum(p.numel() for p in network.parameters())
    return {"parameters": parameters, "iou": float(sum(shares)) / 3, "error": error, "seconds": seconds}


def _twice(before: int, after: int) -> nn.Sequential:
    layers = []
    for channels in (before, after):
        layers += [nn.Conv2d(channels, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers)


def _twice_as_large(maps: Tensor) -> Tensor:
    return maps.repeat_interleave(2, -1).repeat_interleave(2, -2)


def main(options: argparse.Namespace) -> None:
    lines = [
        "| network | parameters | mean IoU of three classes, % | maps change under a quarter turn | seconds a step |",
        "|---|---|---|---|---|",
    ]
    for name, make in WAYS.items():
        runs = [measure(make, seed, options.noise, options.steps, options.rate) for seed in range(options.seeds)]
        error, seconds = max(run["error"] for run in runs), sum(run["seconds"] for run in runs) / len(runs)
        iou = spread([run["iou"] for run in runs])
        lines.append(f"| {name} | {runs[0]['parameters']:,} | {iou} | {error:.1e} | {seconds:.3f} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        f"Mean ± standard deviation over {options.seeds} seeds; noise of {options.noise}, {options.steps} steps of 16 "
        f"pictures, AdamW with a rate of {options.rate}.",
    ]
    save(options.save, " ".join(["python benchmarks/segmentation.py", *sys.argv[1:]]), "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--noise", type=float, default=0.8, help="standard deviation; shapes are 1, the ground is 0")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--save", metavar="NAME", default="segmentation", help="of the results")
    main(parser.parse_args())
