"""What each difference between our networks and the published one does to the logits:  python benchmarks/differences.py

The network is rotmnist_r4_sa (for the last pool pcam_r4_sa) as the public code builds and starts it, in float64, with
biases and gains drawn around where they start. One difference at a time is taken back while the weights stay; told is
the relative change of the logits, the least and the most of `--seeds` networks. The pictures are scikit-learn's digits.
"""

import argparse
import copy
import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F
from _machine import add_record, save
from torch import Tensor, nn

import gsa
from gsa.data import turned_digits
from gsa.models import GSANet
from gsa.models._published import PublishedBlock, PublishedGroupTerm
from gsa.nn import GroupSelfAttention, LiftingSelfAttention, SpatialPool
from gsa.symmetry import equivariance_error, relative_error


def attention(network: GSANet) -> list:
    return [m for m in network.modules() if isinstance(m, GroupSelfAttention | LiftingSelfAttention)]


def corrected(network: GSANet) -> None:
    for layer in attention(network):
        if isinstance(layer, PublishedGroupTerm):
            layer.__class__ = GroupSelfAttention  # has the same parts


def regular(network: GSANet) -> None:
    corrected(network)
    for layer in attention(network):
        if isinstance(layer, GroupSelfAttention):
            layer.form = "regular"


def mlp_order(network: GSANet) -> None:
    """Norm and swish before the first linear map, with the weights of the norm behind the last."""
    for block in network.modules():
        if isinstance(block, PublishedBlock):
            first, norm, swish, last, outer = block.mlp
            block.mlp = nn.Sequential(outer, swish, first, norm, nn.SiLU(), last)


def scale(network: GSANet) -> None:
    for layer in attention(network):
        layer.query_scale = 1.0


def eps(network: GSANet) -> None:
    for module in network.modules():
        if isinstance(module, nn.GroupNorm | nn.LayerNorm):
            module.eps = 1e-5


def mean(network: GSANet) -> None:
    network.pixels = "mean"


def first_biases(network: GSANet) -> None:
    for layer in attention(network):
        for first in (layer.encoding.row[0], layer.encoding.column[0]):
            nn.init.uniform_(first.bias, -1, 1)


def last_pool(network: GSANet) -> None:
    pools = [m for m in network.modules() if isinstance(m, SpatialPool)]
    pools[-1].kernel = 3


DIFFERENCES: dict[str, tuple[str, Callable[[GSANet], None]]] = {
    "group term ĥ⁻¹h̃ in place of ĥ⁻¹h̃h": ("rotmnist_r4_sa", corrected),
    "the regular form, with that term": ("rotmnist_r4_sa", regular),
    "order of the mlp": ("rotmnist_r4_sa", mlp_order),
    "scores divided by √d, not √C": ("rotmnist_r4_sa", scale),
    "eps 1e-5, not 1e-12": ("rotmnist_r4_sa", eps),
    "mean over pixels, not their sum": ("rotmnist_r4_sa", mean),
    "first biases of the encoding from U(−1, 1), not 0": ("rotmnist_r4_sa", first_biases),
    "last pool 3×3, not 2×2": ("pcam_r4_sa", last_pool),
}


def published(name: str, seed: int) -> GSANet:
    torch.manual_seed(seed)
    network = gsa.create_model(name, published=True, pose_index="published").double().eval()
    first = [m for e in attention(network) for m in (e.encoding.row[0].bias, e.encoding.column[0].bias)]
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim == 1 and not any(parameter is bias for bias in first):
                parameter += 0.3 * torch.randn_like(parameter)
    return network


def pictures(name: str) -> Tensor:
    digits = turned_digits()[0][:2].double()
    side, channels = (96, 3) if name.startswith("pcam") else (28, 1)
    return F.interpolate(digits, side, mode="bilinear").expand(-1, channels, -1, -1)


@torch.no_grad()
def measure(seeds: int) -> str:
    """A row for each difference, and what is left of equivariance."""
    lines = ["| taken back | network | relative change of the logits |", "|---|---|---|"]
    errors: dict[str, list[float]] = {}
    for title, (name, take_back) in DIFFERENCES.items():
        changes = []
        for seed in range(seeds):
            network, x = published(name, seed), pictures(name)
            expected, other = network(x), copy.deepcopy(network)
            take_back(other)
            changes.append(relative_error(other(x), expected))
            if take_back in (corrected, last_pool):
                quarter = equivariance_error(network, x, "R4")[1]
                errors.setdefault(f"{name}, as published", []).append(quarter)
                errors.setdefault(f"{name}, {title}", []).append(equivariance_error(other, x, "R4")[1])
            if take_back is last_pool:  # and the pool without the group term
                corrected(network)
                pool_alone = equivariance_error(network, x, "R4")[1]
                errors.setdefault(f"{name}, as published but for the group term", []).append(pool_alone)
        lines.append(f"| {title} | `{name}` | {min(changes):.1e} to {max(changes):.1e} |")
        print(lines[-1], flush=True)
    lines += ["", "| network | change of the logits under a quarter turn |", "|---|---|"]
    lines += [f"| {title} | {min(found):.1e} to {max(found):.1e} |" for title, found in errors.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    save("differences", " ".join(["python benchmarks/differences.py", *sys.argv[1:]]), measure(options.seeds))
