"""Biases of growing size in front of a softmax and of norms: which of them do something."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from gsa.explore._packed import packed
from gsa.symmetry.statements import attention_bias_errors, bias_before_norm

__all__ = ["biases"]

_SIZES = [step / 4 for step in range(17)]


def biases() -> dict[str, Any]:
    """What biases of growing size do to attention and before norms, in float64.

    Returns:
        Plain values for JSON: "sizes", and "cases", each with its "name", what it "does", relative "errors" [sizes] of
        `attention_bias_errors` or `bias_before_norm` (of a value bias, what is left once it has passed), and "outputs",
        packed [sizes, rows, channels].
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        attention = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64).eval()
        nn.init.normal_(attention.in_proj_weight, std=0.5)
        tokens = torch.randn(1, 6, 8, dtype=torch.float64)
        rows, direction = torch.randn(6, 8, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
    errors = [attention_bias_errors(attention, tokens, size) for size in _SIZES]
    parts = {
        "query": ("Query bias in attention", "matters"),
        "key": ("Key bias in attention", "void"),
        "value": ("Value bias in attention", "passes"),
    }
    of_attention = [
        {"name": name, "does": does, "errors": [error[part] for error in errors]}
        | {"outputs": packed(torch.stack([_attended(attention, tokens, i, size) for size in _SIZES]).float())}
        for i, (part, (name, does)) in enumerate(parts.items())
    ]
    batch, layer = nn.BatchNorm1d(8, dtype=torch.float64), nn.LayerNorm(8, dtype=torch.float64)
    of_norms = [
        _before_norm("Linear bias before BatchNorm, in training", "void", batch, rows, direction),
        _before_norm("Linear bias before LayerNorm", "matters", layer, rows, direction),
        _before_norm("The same in all channels, before LayerNorm", "void", layer, rows, torch.ones_like(direction)),
    ]
    return {"sizes": _SIZES, "cases": of_attention + of_norms}


def _attended(attention: nn.MultiheadAttention, tokens: Tensor, part: int, size: float) -> Tensor:
    """Self-attention with a bias on queries, keys or values: [N, C]."""
    attention = copy.deepcopy(attention)
    with torch.no_grad():
        attention.in_proj_bias.view(3, -1)[part] += size
        return attention(tokens, tokens, tokens, need_weights=False)[0][0]


def _before_norm(name: str, does: str, norm: nn.Module, rows: Tensor, direction: Tensor) -> dict[str, Any]:
    with torch.no_grad():
        outputs = torch.stack([copy.deepcopy(norm)(rows + size * direction) for size in _SIZES])
    errors = [bias_before_norm(norm, rows, size * direction) for size in _SIZES]
    return {"name": name, "does": does, "errors": errors, "outputs": packed(outputs.float())}
