"""What is left of symmetry between the pixels: R8 and R16 at 45° and 22.5°, with depth, against R4.

    python benchmarks/symmetry.py

Quarter turns are exact and shown as such. Other angles are *sampled*: the picture itself is turned by bilinear
interpolation and the feature it is compared with too, so a figure holds what sampling loses and what the network adds.
Networks have random weights; the pictures are scikit-learn's digits on an empty background.

The error at a depth is ‖Φ(L_g x) − L_g Φ(x)‖ / ‖Φ(x)‖ inside the largest disk of the map, that of the logits their
relative change. A group without the angle has no pose to go to: there L_g moves the pixels and leaves the poses.
"""

import argparse
import sys

import torch
from _machine import add_record, save
from torch import Tensor, nn

import gsa
from gsa.data import turned_digits
from gsa.groups import act_on_plane
from gsa.nn import AttentionBlock, LiftingSelfAttention, PlainBlock, SpatialPool
from gsa.symmetry import relative_error
from gsa.training.adapter import BATCH_NORM

SEEDS = range(5)
NETWORKS = {  # window of the blocks → what `gsa.create_model` is given
    "functional encoding, 5×5 square": {"name": "rotmnist_r4_sa", "form": "regular", "window": "square"},
    "functional encoding, 5×5 disk": {"name": "rotmnist_r4_sa", "form": "regular", "window": "disk"},
    "heads that start at offsets, squares of 3×3 and 5×5": {"name": "rotmnist_gsa", "window": "square"},
    "heads that start at offsets, 5×5 disk": {"name": "rotmnist_gsa", "window": "disk", "neighbourhoods": [5] * 5},
}
CASES = [("R4", 90.0), ("R4", 45.0), ("R8", 45.0), ("R16", 45.0), ("R4", 22.5), ("R8", 22.5), ("R16", 22.5)]
TURNS = gsa.group("R16")  # has every angle above


def move(x: Tensor, name: str, degrees: float) -> Tensor:
    """L_g on images and features; poses stay where the group has no such angle."""
    group = gsa.group(name)
    element = degrees * group.order / 360
    if x.ndim == 5 and element.is_integer():
        return group.act(x, int(element))
    return act_on_plane(x, TURNS.matrices[round(degrees / 22.5)])


def inside_disk(x: Tensor) -> Tensor:
    """The pixels within the largest centred disk: [..., H, W] -> [..., pixels]."""
    axis = torch.arange(x.shape[-1]) - (x.shape[-1] - 1) / 2
    return x[..., axis.square() + axis[:, None].square() <= (x.shape[-1] / 2) ** 2]


def at_every_depth(network: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """Features after the lifting layer, every block and every pool, and the logits."""
    features: dict[str, Tensor] = {}
    kinds = {LiftingSelfAttention: "lifting", AttentionBlock: "block", PlainBlock: "block", SpatialPool: "max-pool"}

    def keep(module, inputs, output):
        features[f"{len(features)}: {kinds[type(module)]}"] = output

    handles = [m.register_forward_hook(keep) for m in network.modules() if type(m) in kinds]
    logits = network(images)
    for handle in handles:
        handle.remove()
    return {**features, "logits": logits}


def errors(name: str, angles: list[float], keywords: dict, images: Tensor) -> list[dict[str, float]]:
    """For each angle the relative error at each depth, mean over seeds."""
    totals: list[dict[str, float]] = [{} for _ in angles]
    for seed in SEEDS:
        torch.manual_seed(seed)
        network = gsa.create_model(group=name, **keywords).double()
        for module in network.modules():
            if isinstance(module, BATCH_NORM):
                module.momentum = None  # what one batch has to be normalised by
        network(images)
        network.eval()
        before = at_every_depth(network, images)
        for degrees, total in zip(angles, totals, strict=True):
            after = at_every_depth(network, move(images, name, degrees))
            for depth, feature in before.items():
                if depth == "logits":
                    error = relative_error(after[depth], feature)
                else:
                    expected, scale = inside_disk(move(feature, name, degrees)), inside_disk(feature).norm()
                    error = relative_error(inside_disk(after[depth]), expected, scale)
                total[depth] = total.get(depth, 0.0) + error / len(SEEDS)
    return totals


def title(name: str, degrees: float) -> str:
    if degrees == 90:
        return f"{name}, 90° (exact)"
    member = (degrees * gsa.group(name).order / 360).is_integer()
    return f"{name}, {degrees:g}° ({'sampled' if member else 'not in the group'})"


@torch.no_grad()
def main() -> None:
    digits, _ = turned_digits(seed=0, size=28)
    images = digits[:4].double()
    images = images - images.amin()
    lines = [f"RotMNIST networks, regular form, random weights (mean of {len(SEEDS)} seeds), float64, 4 digits."]
    for what, keywords in NETWORKS.items():
        found = {}
        for name in dict(CASES):
            angles = [degrees for other, degrees in CASES if other == name]
            found |= zip(((name, degrees) for degrees in angles), errors(name, angles, keywords, images), strict=True)
        columns = [found[case] for case in CASES]
        lines += ["", f"{what}:", ""]
        lines.append("| depth | " + " | ".join(title(*case) for case in CASES) + " |")
        lines.append("|---|" + "---|" * len(CASES))
        for depth in columns[0]:
            lines.append(f"| {depth} | " + " | ".join(f"{column[depth]:.1e}" for column in columns) + " |")
    table = "\n".join(lines)
    print(table)
    save("symmetry", " ".join(["python benchmarks/symmetry.py", *sys.argv[1:]]), table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.parse_args()
    main()
