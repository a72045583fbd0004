"""Whether a transformer does better without biases: small ones on digits, tested on digits that have been changed.

    python benchmarks/biases.py --seeds 5

The conjecture: biases are prior knowledge, so without them a network is somewhat worse on what it was trained on and
better when the data shift; norms that take no mean away, and rotary encodings in place of a table of positions, serve
the same end. Every network has two blocks, four heads of eight channels, patches of 2×2 pixels, and sees the same
digits in the same order; accuracy in % of the same 397 digits, as they are and changed.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from _machine import add_record, save
from sklearn.datasets import load_digits
from torch import Tensor, nn

CHANNELS, HEADS, PATCH, SIDE = 32, 4, 2, 4
TRAINED_ON = 1400

CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "as trained": lambda x: x,
    "half as bright": lambda x: x / 2,
    "twice as bright": lambda x: 2 * x,
    "0.3 added": lambda x: x + 0.3,
    "noise of 0.3": lambda x: x + 0.3 * torch.randn(x.shape, generator=torch.Generator().manual_seed(9)),
    "moved by a pixel": lambda x: F.pad(x, (1, 0))[..., :-1],
}


@dataclass(frozen=True)
class Kind:
    """What a network is made with."""

    has_biases: bool
    norm: str = "layer"
    is_rotary: bool = False

    def __str__(self) -> str:
        norm = {"layer": "LayerNorm", "rms": "RMSNorm"}[self.norm]
        places = "rotary" if self.is_rotary else "table of positions"
        return f"{norm}, {places}, {'biases' if self.has_biases else 'none'}"

    def linear(self, inputs: int, outputs: int) -> nn.Linear:
        return nn.Linear(inputs, outputs, bias=self.has_biases)

    def new_norm(self) -> nn.Module:
        return nn.LayerNorm(CHANNELS, bias=self.has_biases) if self.norm == "layer" else nn.RMSNorm(CHANNELS)


KINDS = [Kind(biases, norm) for norm in ("layer", "rms") for biases in (True, False)]
KINDS += [Kind(True, "layer", True), Kind(False, "rms", True)]


class Block(nn.Module):
    """Attention and an MLP, each behind a norm."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.before_attention, self.before_mlp, self.is_rotary = kind.new_norm(), kind.new_norm(), kind.is_rotary
        self.query_key_value, self.out = kind.linear(CHANNELS, 3 * CHANNELS), kind.linear(CHANNELS, CHANNELS)
        self.mlp = nn.Sequential(kind.linear(CHANNELS, 2 * CHANNELS), nn.GELU(), kind.linear(2 * CHANNELS, CHANNELS))

    def forward(self, tokens: Tensor) -> Tensor:
        query, key, value = self.query_key_value(self.before_attention(tokens)).chunk(3, dim=-1)
        query, key, value = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in (query, key, value))
        if self.is_rotary:
            query, key = turned(query), turned(key)
        attended = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        tokens = tokens + self.out(attended)
        return tokens + self.mlp(self.before_mlp(tokens))


def transformer(kind: Kind) -> nn.Sequential:
    """Pictures [B, 8, 8] → logits [B, 10]."""
    places = [] if kind.is_rotary else [Places()]
    ends = [kind.new_norm(), Mean(), kind.linear(CHANNELS, 10)]
    return nn.Sequential(Patches(), kind.linear(PATCH**2, CHANNELS), *places, Block(kind), Block(kind), *ends)


class Patches(nn.Module):
    """[B, 8, 8] → [B, 16, 4]."""

    def forward(self, pictures: Tensor) -> Tensor:
        return pictures.unfold(1, PATCH, PATCH).unfold(2, PATCH, PATCH).flatten(3).flatten(1, 2)


class Places(nn.Module):
    """A table of positions, added."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(SIDE**2, CHANNELS))

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens + self.table


class Mean(nn.Module):
    """Over the tokens."""

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens.mean(1)


def turned(x: Tensor) -> Tensor:
    """Pairs of a head's channels turned by the row of their token, or by its column, at frequencies of their own."""
    count = x.shape[-1] // 4
    place, rates = torch.arange(SIDE**2), 10000.0 ** (-torch.arange(count) / count)
    phase = torch.cat([where[:, None] * rates for where in (place // SIDE, place % SIDE)], dim=1)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * phase.cos() - odd * phase.sin(), even * phase.sin() + odd * phase.cos()), -1).flatten(-2)


def measured(kind: Kind, seed: int, epochs: int) -> dict[str, float]:
    """Accuracy in percent under every change, after training with a seed."""
    pixels, answers = load_digits(return_X_y=True)
    pictures, labels = torch.tensor(pixels / 16, dtype=torch.float32).view(-1, 8, 8), torch.tensor(answers)
    torch.manual_seed(seed)
    order = torch.randperm(len(labels))
    training, test = order[:TRAINED_ON], order[TRAINED_ON:]
    batches = [batch for _ in range(epochs) for batch in training[torch.randperm(TRAINED_ON)].split(64)]
    network = transformer(kind)
    optimizer = torch.optim.AdamW(network.parameters(), 3e-3)
    for batch in batches:
        optimizer.zero_grad()
        F.cross_entropy(network(pictures[batch]), labels[batch]).backward()
        optimizer.step()
    with torch.no_grad():
        return {
            name: 100 * (network(change(pictures[test])).argmax(1) == labels[test]).double().mean().item()
            for name, change in CHANGES.items()
        }


def main(seeds: int, epochs: int) -> None:
    lines = [
        f"Test accuracy, %, {epochs} epochs of {TRAINED_ON} digits, mean ± standard deviation over {seeds} seeds.",
        "",
        f"| network | parameters | {' | '.join(CHANGES)} |",
        "|---|---|" + "---|" * len(CHANGES),
    ]
    for kind in KINDS:
        runs = [measured(kind, seed, epochs) for seed in range(seeds)]
        cells = [str(kind), f"{sum(p.numel() for p in transformer(kind).parameters()):,}"]
        for name in CHANGES:
            found = [run[name] for run in runs]
            spread = f" ± {statistics.stdev(found):.1f}" if seeds > 1 else ""
            cells.append(f"{statistics.mean(found):.1f}{spread}")
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    save("biases", " ".join(["python benchmarks/biases.py", *sys.argv[1:]]), "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    main(options.seeds, options.epochs)
