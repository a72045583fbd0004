"""Attention of queries to keys with values, and what biases do."""

import torch
from torch import Tensor, nn

from gsa.nn import GroupSelfAttention
from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._biases import (
    attention_bias_errors,
    attention_order_errors,
    bias_before_norm,
    bias_is_mean_error,
    softmax_shift_error,
)
from gsa.symmetry.statements._examples._example import Figures, example
from gsa.symmetry.statements._examples._networks import Squashed, another_order, attention
from gsa.symmetry.statements._examples._sources import BIASES

__all__ = ["EXAMPLES"]


@example(BIASES, attention_order_errors)
def queries_and_keys() -> Figures:
    """Attention is equivariant in its queries and invariant in its keys with their values."""
    layer, context = attention(), torch.randn(2, 6, 8)

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return layer(query, key, value, need_weights=False)[0]

    orders = another_order(4), another_order(6)
    errors = attention_order_errors(attend, torch.randn(2, 4, 8), context, context, *orders)
    contrasts = {"keys without their values": errors.pop("keys alone")}
    return Figures(errors, contrasts)


@example(BIASES, softmax_shift_error)
def softmax_shift() -> Figures:
    """softmax(x + δ) = softmax(x), and its weights add up to 1."""
    scores = torch.randn(5, 7)
    moved = (scores + torch.arange(7)).softmax(-1)
    return Figures(
        softmax_shift_error(scores, 3.0),
        {"shift that grows from key to key": relative_error(moved, scores.softmax(-1))},
    )


@example(BIASES, attention_bias_errors)
def biases_of_attention() -> Figures:
    """The bias of keys is void, with no gradient, that of values passes as it is, and that of queries matters."""
    errors = attention_bias_errors(attention(), torch.randn(2, 6, 8))
    rotary = GroupSelfAttention("R4", 2, 3, 2, 6, 3, "rotary", "regular")
    turned = attention_bias_errors(rotary, torch.randn(1, 2, 4, 5, 5))
    contrasts = {"query": errors.pop("query"), "key, with rotary encoding": turned["key"]}
    return Figures(errors, contrasts)


@example(BIASES, bias_before_norm)
def bias_before_a_norm() -> Figures:
    """A bias is void before BatchNorm in training; before LayerNorm only what is the same in all channels."""
    x, bias = torch.randn(10, 8), 1 + torch.rand(8)
    same = bias[:1].expand(8)
    return Figures(
        {
            "BatchNorm": bias_before_norm(nn.BatchNorm1d(8), x, bias),
            "LayerNorm, all channels alike": bias_before_norm(nn.LayerNorm(8), x, same),
        },
        {
            "BatchNorm in eval mode": bias_before_norm(nn.BatchNorm1d(8).eval(), x, bias),
            "LayerNorm": bias_before_norm(nn.LayerNorm(8), x, bias),
            "RMSNorm, all channels alike": bias_before_norm(nn.RMSNorm(8), x, same),
        },
    )


@example(BIASES, bias_is_mean_error)
def bias_as_prior_knowledge() -> Figures:
    """A bias is prior knowledge: E[Wx + b] = b for inputs of mean zero."""
    x = torch.randn(20, 8)
    return Figures(
        {"mean output": bias_is_mean_error(nn.Linear(8, 3), x)},
        {"with tanh behind": bias_is_mean_error(Squashed(8, 3), x)},
    )


EXAMPLES = (queries_and_keys, softmax_shift, biases_of_attention, bias_before_a_norm, bias_as_prior_knowledge)
