"""Small networks of the authors' public code, with their logits:  python -m tests.published.freeze PATH_TO_THEIR_CLONE

Their coordinates of rotated windows are in float32, where cos 90° is 4e-8; they are put in float64 here, so that logits
can be compared to 1e-9. Nothing else is touched. The files are what `torch.save(state_dict)` wrote, and logits.pt.
"""

import sys
from pathlib import Path

import torch

FROZEN = Path(__file__).parent / "frozen"
GROUPS = {"Z2": ("SE2", 1), "R4": ("SE2", 4), "R8": ("SE2", 8), "Z2M": ("E2", 2)}
SMALL = {"channels": 8, "num_heads": 2}


def pictures() -> torch.Tensor:
    """Two, in float64."""
    return torch.rand(2, 1, 28, 28, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def main(clone: str) -> None:
    sys.path.insert(0, clone)
    from g_selfatt import groups
    from models.group_transformer import GroupTransformer

    logits = {}
    for name, (kind, elements) in GROUPS.items():
        torch.manual_seed(0)
        network = GroupTransformer(
            group=getattr(groups, kind)(num_elements=elements),
            in_channels=1,
            num_channels=SMALL["channels"],
            num_heads=SMALL["num_heads"],
            block_sizes=[2, 3],
            expansion_per_block=1,
            crop_per_layer=[2, 0, 2, 1, 1],
            image_size=28,
            patch_size=5,
            normalize_between_layers=False,
            maxpool_after_last_block=False,
            activation_function="Swish",
            attention_dropout_rate=0.1,
            value_dropout_rate=0.1,
        ).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.ndim == 1:  # biases and gains, which start at 0 and 1
                    parameter += 0.3 * torch.randn_like(parameter)
        torch.save(network.state_dict(), FROZEN / f"{name.lower()}.pt")
        network.double()
        for module in network.modules():
            if hasattr(module, "row_indices"):
                _exact(module)
        with torch.no_grad():
            logits[name] = network(pictures())
    torch.save(logits, FROZEN / "logits.pt")


def _exact(layer: torch.nn.Module) -> None:
    """Row and column indices as their code computes them, in float64."""
    line = torch.linspace(-1, 1, layer.patch_size, dtype=torch.float64)
    places = torch.stack(torch.meshgrid(line, line, indexing="ij"))
    for index, element in enumerate(layer.group.elements.double()):
        angle, mirrored = element[0], len(element) == 2 and element[1] == -1
        turn = torch.tensor([[angle.cos(), -angle.sin()], [angle.sin(), angle.cos()]])
        acted = torch.einsum("oi,ixy->oxy", turn, places)
        layer.row_indices[index], layer.col_indices[index] = acted.flip(-1) if mirrored else acted


if __name__ == "__main__":
    main(sys.argv[1])
