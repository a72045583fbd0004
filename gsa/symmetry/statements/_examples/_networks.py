"""Small networks that examples share, with weights at random."""

from collections.abc import Callable
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gsa.nn import AttentionBlock, AttentionOptions, LiftingSelfAttention

__all__ = [
    "Classifier",
    "PatchTransformer",
    "Placed",
    "Squashed",
    "Sums",
    "another_order",
    "attention",
    "encoder",
    "mlp",
    "spread",
]

_Network = TypeVar("_Network", bound=nn.Module)


def another_order(count: int) -> Tensor:
    """A random order in which nothing stays in its place and which is not its own inverse, one cycle: int64 [count]."""
    places = torch.randperm(count)
    order = torch.empty_like(places)
    order[places] = places.roll(1)
    return order


def encoder(layers: int = 1, dropout: float = 0.0) -> nn.TransformerEncoder:
    """A transformer without positions, of 8 features and 2 heads, [B, N, 8] → [B, N, 8]."""
    layer = nn.TransformerEncoderLayer(8, 2, 12, dropout, batch_first=True)
    return spread(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False))


def attention(heads: int = 2) -> nn.MultiheadAttention:
    """Attention of 8 features."""
    return spread(nn.MultiheadAttention(8, heads, batch_first=True))


def mlp(activation: nn.Module, *between: nn.Module) -> nn.Sequential:
    """3 inputs, 4 hidden units, 2 outputs."""
    return nn.Sequential(nn.Linear(3, 4), activation, *between, nn.Linear(4, 2))


def spread(network: _Network) -> _Network:
    """Weights far from their start, so that no bias is zero and no norm trivial."""
    for parameter in network.parameters():
        start = parameter.detach().clone() if parameter.ndim == 1 else 0
        nn.init.normal_(parameter, std=0.4).data.add_(start)
    return network


class Sums(nn.Module):
    """No function of each entry."""

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(-1)


class Squashed(nn.Linear):
    """A linear layer with tanh at its end, which is none."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).tanh()


class Placed(nn.Module):
    """A network of 6 tokens of 8 features, to which a learned table of positions is added."""

    def __init__(self, network: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.network, self.table = network, nn.Parameter(torch.randn(6, 8))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.network(tokens + self.table)


class PatchTransformer(nn.Module):
    """A transformer of the 16 patches, 2×2, of pictures [B, 1, 8, 8], with a mean at its end: 3 logits."""

    def __init__(self, positions: bool) -> None:
        super().__init__()
        self.embed, self.encoder, self.head = nn.Linear(4, 8), encoder(), nn.Linear(8, 3)
        self.table = torch.randn(16, 8) if positions else torch.zeros(16, 8)

    def forward(self, pictures: Tensor) -> Tensor:
        patches = F.unfold(pictures, 2, stride=2).mT
        return self.head(self.encoder(self.embed(patches) + self.table).mean(1))


class Classifier(nn.Module):
    """Lifting self-attention, a block, means over pixels, a linear map, the largest over poses: [B, 1, H, W] → [B, 4].

    Args:
        group: name of the point group H.
        neighbourhood: of both attention layers; they are global when None.
    """

    def __init__(self, group: str, neighbourhood: int | None = None) -> None:
        super().__init__()
        options = AttentionOptions(num_heads=2, head_dim=8, neighbourhood=neighbourhood, encoding="fourier")
        self.lifting = LiftingSelfAttention(group, 1, 8, **vars(options))
        self.block = AttentionBlock(group, 8, 8, options, "regular", norm="channel")
        self.head = nn.Linear(8, 4)

    def features(self, pictures: Tensor) -> Tensor:
        """[B, 8, |H|, H, W]"""
        return self.block(self.lifting(pictures))

    def forward(self, pictures: Tensor) -> Tensor:
        return self.head(self.features(pictures).mean((-2, -1)).mT).amax(1)
