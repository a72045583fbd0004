"""How symmetry survives between pixels: the drift of R8 and R16 at 45° and 22.5°, with depth, against R4's.

    python benchmarks/symmetry.py

Quarter turns are exact and measured as such. Other angles are *sampled*: the picture itself is turned by bilinear
interpolation, so the table shows what the picture loses together with what the network adds. Each network has random
weights; the pictures are scikit-learn's digits, turned about their centre.

The drift at a depth is the relative change of the feature averaged over pixels and poses, which an ideal network
would leave unchanged at every angle of its group:  ‖p(Φ(L_g x)) − p(Φ(x))‖ / ‖p(Φ(x)) − mean over digits‖.
"""

import torch
from _machine import save
from torch import nn

import gsa
from gsa.data import turned_digits
from gsa.nn import AttentionBlock, LiftingSelfAttention, SpatialPool

NETWORKS = 5
SIZE = 28
CASES = [("R4", 90.0), ("R4", 45.0), ("R4", 22.5), ("R8", 90.0), ("R8", 45.0), ("R8", 22.5)]
CASES += [("R16", 90.0), ("R16", 45.0), ("R16", 22.5)]
ALL_TURNS = gsa.group("R16")  # every angle above is one of its elements


def depths(network: nn.Module, images: torch.Tensor) -> dict[str, torch.Tensor]:
    """Pooled features after the lifting layer, each block, each pool, and the logits: name → [B, K]."""
    pooled: dict[str, torch.Tensor] = {}
    handles = []
    for index, (_, module) in enumerate(
        (n, m) for n, m in network.named_modules() if isinstance(m, LiftingSelfAttention | AttentionBlock | SpatialPool)
    ):
        kind = {LiftingSelfAttention: "lifting", AttentionBlock: "block", SpatialPool: "max-pool"}[type(module)]

        def keep(_module, _inputs, output, name=f"{index} {kind}"):
            pooled[name] = output.mean((2, 3, 4))

        handles.append(module.register_forward_hook(keep))
    logits = network(images)
    for handle in handles:
        handle.remove()
    return {**pooled, "logits": logits}


def drift(name: str, degrees: float, images: torch.Tensor) -> dict[str, float]:
    """Relative change at each depth, mean over networks."""
    turned = ALL_TURNS.act(images, round(degrees / 22.5))
    total: dict[str, float] = {}
    for seed in range(NETWORKS):
        torch.manual_seed(seed)
        network = gsa.create_model("rotmnist_r4_sa", group=name, form="regular").double().eval()
        before, after = depths(network, images), depths(network, turned)
        for depth in before:
            spread = (before[depth] - before[depth].mean(0)).norm()
            change = ((after[depth] - before[depth]).norm() / spread).item()
            total[depth] = total.get(depth, 0.0) + change / NETWORKS
    return total


@torch.no_grad()
def main() -> None:
    digits, _ = turned_digits(seed=0, size=SIZE)
    images = digits[:8].double()
    images = images - images.amin()  # an empty background, so that turning brings in nothing new
    columns = [drift(name, degrees, images) for name, degrees in CASES]
    kinds = ["exact" if degrees == 90 else "sampled" for _, degrees in CASES]
    lines = [
        f"RotMNIST networks, regular form, random weights (mean of seeds 0–{NETWORKS - 1}), float64, 8 digits.",
        "",
        "| depth | " + " | ".join(f"{name}, {degrees:g}°, {k}" for (name, degrees), k in zip(CASES, kinds, strict=True)),
        "|---|" + "---|" * len(CASES),
    ]
    for depth in columns[0]:
        lines.append(f"| {depth} | " + " | ".join(f"{column[depth]:.1e}" for column in columns) + " |")
    table = "\n".join(lines)
    print(table)
    save("symmetry", "python benchmarks/symmetry.py", table)


if __name__ == "__main__":
    main()
