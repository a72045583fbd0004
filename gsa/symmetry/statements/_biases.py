"""Attention of queries to a context: what their orders, and what biases, do to it."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from gsa.nn import SelfAttention
from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._norm import relative_error
from gsa.symmetry._orders import check_order

__all__ = [
    "attention_bias_errors",
    "attention_order_errors",
    "bias_before_norm",
    "bias_is_mean_error",
    "softmax_shift_error",
]


def attention_order_errors(
    attend: Callable[[Tensor, Tensor, Tensor], Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_order: Tensor,
    key_order: Tensor,
) -> dict[str, float]:
    """Attention is equivariant in its queries, and invariant in its keys with their values.

        Attn(σX, Y, Y) = σ Attn(X, Y, Y),   Attn(X, σY, σY) = Attn(X, Y, Y)

    With biases as without. Source: the essay on biases and permutation invariance of attention (in Chinese), which
    sets the bias-free case apart because Wσ(X) ≠ σ(WX + b); what counts, σ(WX + b) = Wσ(X) + b, holds.

    Args:
        attend: of query, key and value, tokens on the axis before the last: [B, …, N, C], [B, …, M, C], [B, …, M, C].
            A module is put in eval mode.
        query, key, value: its arguments.
        query_order, key_order: int64 [N] and [M].

    Returns:
        {"queries", "keys with values": relative error; "keys alone": relative change where values stay, the contrast}.

    Raises:
        ValueError: no orders of the queries and keys.
    """
    check_order(query_order, query.shape[-2])
    check_order(key_order, key.shape[-2])
    with torch.no_grad(), evaluating(attend):
        expected = attend(query, key, value)
        keys, values = key[..., key_order, :], value[..., key_order, :]
        queries = attend(query[..., query_order, :], key, value)
        return {
            "queries": relative_error(queries, expected[..., query_order, :]),
            "keys with values": relative_error(attend(query, keys, values), expected),
            "keys alone": relative_error(attend(query, keys, value), expected),
        }


def softmax_shift_error(scores: Tensor, shift: float) -> dict[str, float]:
    """softmax(x + δ) = softmax(x), and its entries add up to 1: why key biases are void and value biases pass.

    Args:
        scores: x, [..., N], softmax over the last axis.
        shift: δ.

    Returns:
        {"shift", "sum": relative error}.
    """
    weights = scores.softmax(-1)
    total = weights.sum(-1)
    return {
        "shift": relative_error((scores + shift).softmax(-1), weights),
        "sum": relative_error(total, torch.ones_like(total)),
    }


def attention_bias_errors(attention: nn.Module, x: Tensor, step: float = 1.0) -> dict[str, float]:
    """What the biases of keys, values and queries do to self-attention without dropout.

        Attn = Σ softmax(q·(W_K y + b_K)) (W_V y + b_V) = Σ softmax(q·W_K y) W_V y + b_V

    b_K adds q·b_K to all scores of a query, and cancels; b_V passes as it is, |H| times in the summed form; b_Q adds
    b_Q·k, which differs from key to key, and matters. With a rotary encoding b_K is turned with the keys, and matters.
    (The essay says early on that the query's bias cancels, and in one line of its end that the key's matters; its
    derivation says what is measured here.)
    Source: the essay on biases and permutation invariance of attention (in Chinese), after Namazifar et al. 2023.

    Args:
        attention: `nn.MultiheadAttention` with biases and batch_first=True, as self-attention, or a layer of `gsa.nn`
            all of whose heads have content; it is copied.
        x: what it takes.
        step: what is added to every bias in turn.

    Returns:
        {"key": relative change of the output; "key gradient": norm of its gradient, relative to the query's; "value":
        relative error of passing as W_O b_V; "query": relative change of the output}.

    Raises:
        ValueError: another module, or one without biases.
    """
    attention = copy.deepcopy(attention)
    (biases, sizes), out, times = _biases_of(attention)
    of_tokens = isinstance(attention, nn.MultiheadAttention)

    def run() -> Tensor:
        return attention(x, x, x, need_weights=False)[0] if of_tokens else attention(x)

    with evaluating(attention):
        gradient = torch.autograd.grad(run().square().sum(), biases)[0].split(sizes)
        with torch.no_grad():
            before, moved = run(), []
            for part in biases.split(sizes):
                part += step
                moved.append(run())
                part -= step
    passed = times * step * out.sum(1)
    passed = passed if of_tokens else passed.view(-1, 1, 1, 1)
    return {
        "key": relative_error(moved[1], before),
        "key gradient": (gradient[1].norm() / gradient[0].norm()).item(),
        "value": relative_error(moved[2], before + passed),
        "query": relative_error(moved[0], before),
    }


def bias_before_norm(norm: nn.Module, x: Tensor, bias: Tensor) -> float:
    """What a bias does before a norm, in the mode the norm is in: ‖norm(x + b) − norm(x)‖ / ‖norm(x)‖.

    Void before BatchNorm in training, which takes away the mean of every channel; not in eval mode, whose means stand
    still. Not void before LayerNorm, but for its part that is the same in all channels; RMSNorm takes away nothing.
    Source: the essay on biases and permutation invariance of attention (in Chinese).

    Args:
        norm: of [..., C]; it is copied, so that no statistics are kept.
        x: [..., C].
        bias: b, [C], such as that of a linear layer.
    """
    norm = copy.deepcopy(norm)
    with torch.no_grad():
        return relative_error(norm(x + bias), norm(x))


def bias_is_mean_error(linear: nn.Linear, x: Tensor) -> float:
    """E[Wx + b] = b for inputs of mean zero: ‖mean − b‖ / ‖b‖ over the samples and their opposites.

    Source: the essay on biases and permutation invariance of attention (in Chinese): a bias as prior knowledge.

    Args:
        linear: W and b ≠ 0.
        x: [n, C]; −x is taken too, as Gaussian inputs have it, so that the mean of the inputs is zero.
    """
    with torch.no_grad():
        return relative_error(linear(torch.cat((x, -x))).mean(0), linear.bias)


def _biases_of(attention: nn.Module) -> tuple[tuple[Tensor, list[int]], Tensor, int]:
    """Biases of query, key and value side by side, with the size of each; W_O, and how often b_V passes."""
    if isinstance(attention, nn.MultiheadAttention) and attention.batch_first and attention.in_proj_bias is not None:
        return (attention.in_proj_bias, 3 * [attention.embed_dim]), attention.out_proj.weight, 1
    if isinstance(attention, SelfAttention) and not attention.positional_heads:
        assert attention.query_key_value is not None
        if attention.query_key_value.bias is not None:
            times = attention.group.order if attention.form == "summed" else 1
            values = attention.out.in_features
            keys = (attention.query_key_value.out_features - values) // 2
            return (attention.query_key_value.bias, [keys, keys, values]), attention.out.weight, times
    raise ValueError(
        "biases are known of nn.MultiheadAttention with bias=True and batch_first=True, and of layers of gsa.nn with "
        f"biases, all of whose heads have content, but got {attention}"
    )
