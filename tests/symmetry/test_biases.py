"""Attention of queries to a context, and what biases do to it; each with a planted failure."""

import itertools

import pytest
import torch
from torch import nn

from gsa import ops
from gsa.nn import GroupSelfAttention, LiftingSelfAttention
from gsa.symmetry import relative_error
from gsa.symmetry import statements as S

pytestmark = pytest.mark.usefixtures("float64")

EXACT = 1e-13


def multi_head(heads, bias=True):
    attention = nn.MultiheadAttention(8, heads, bias=bias, batch_first=True)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    return attention


class Layer(nn.Module):
    """Columns as in the essay: X + LayerNorm(Attn(X, Y, Y)), then X + LayerNorm(FFN(X)), all with biases."""

    def __init__(self):
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.ends = nn.ModuleList((nn.Linear(8, 12), nn.Linear(12, 8)))
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(2))

    def forward(self, x, keys, values):
        query, key, value = (f(t).mT for f, t in zip(self.maps, (x, keys, values), strict=True))
        x = x + self.norms[0]((value @ (key.mT @ query / 8**0.5).softmax(-2)).mT)
        return x + self.norms[1](self.ends[1](self.ends[0](x).clamp_min(0)))


def of(attention):
    return lambda query, key, value: attention(query, key, value)[0]


def op():
    """Our op without positions, over 2×3 queries and keys."""
    spatial, pose, window = torch.zeros(1, 3, 5, 8), torch.zeros(1, 1, 8), torch.ones(3, 5, dtype=torch.bool)

    def attend(*tokens):
        query, key, value = (t.view(t.shape[0], 1, 1, 2, 3, 8) for t in tokens)
        return ops.attend(query, key, value, spatial, pose, window).flatten(1, 4)

    return attend


ATTENTION = {
    "op": op,
    "one head": lambda: of(multi_head(1)),
    "without biases": lambda: of(multi_head(1, bias=False)),
    "several heads": lambda: of(multi_head(4)),
    "layer": Layer,
}


@pytest.mark.parametrize("name", ATTENTION)
def test_equivariant_in_queries_and_invariant_in_keys_with_values(name):
    query, key, value = torch.randn(3, 2, 6, 8)
    if name != "op":
        query = torch.randn(2, 4, 8)
    orders = torch.randperm(query.shape[1]), torch.tensor([2, 0, 1, 5, 3, 4])
    attend = ATTENTION[name]()
    errors = S.attention_order_errors(attend, query, key, value, *orders)
    assert errors.pop("keys alone") > 1e-2
    assert max(errors.values()) < EXACT

    def planted(query, key, value):  # a key's place in its value
        return attend(query, key, value + torch.arange(6.0)[:, None])

    assert S.attention_order_errors(planted, query, key, value, *orders)["keys with values"] > 1e-3


def test_attention_is_its_formula():
    """V softmax(KᵀQ/√d) in columns is what one head without biases computes."""
    attention, x, y = multi_head(1, False), torch.randn(2, 4, 8), torch.randn(2, 6, 8)
    w_q, w_k, w_v = attention.in_proj_weight.chunk(3)
    query, key, value = w_q @ x.mT, w_k @ y.mT, w_v @ y.mT
    expected = (value @ (key.mT @ query / 8**0.5).softmax(-2)).mT @ attention.out_proj.weight.T
    assert relative_error(attention(x, y, y)[0], expected) < EXACT
    assert relative_error(attention(x, y, y)[0], expected * 8**0.5) > 0.1  # planted: another scale


def test_layer_norm_is_its_formula():
    norm, x = nn.LayerNorm(8), torch.randn(6, 8)
    nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    assert relative_error(norm(x), centred / (variance + norm.eps).sqrt() * norm.weight + norm.bias) < EXACT
    assert relative_error(norm(x), x / (variance + norm.eps).sqrt() * norm.weight + norm.bias) > 0.1  # planted


def test_softmax_forgets_a_shift():
    assert max(S.softmax_shift_error(torch.randn(5, 7), 3.0).values()) < EXACT
    assert S.softmax_shift_error(torch.randn(5, 7), torch.arange(7.0))["shift"] > 0.1  # planted: not constant over keys


@pytest.mark.parametrize("heads", [1, 4])
def test_biases_of_multi_head_attention(heads):
    errors = S.attention_bias_errors(multi_head(heads), torch.randn(2, 6, 8))
    assert errors.pop("query") > 1e-2
    assert max(errors.values()) < EXACT


@pytest.mark.parametrize(
    "form, encoding",
    [
        *itertools.product(("lifting", "regular", "summed"), ("functional", "table", "fourier", "constant")),
        ("lifting", "rotary"),
        ("regular", "rotary"),
        ("lifting", "quadratic"),
        ("regular", "quadratic"),  # keys are narrower than values
    ],
)
def test_biases_of_our_layers(form, encoding):
    if form == "lifting":
        layer, x = LiftingSelfAttention("R4", 2, 3, 2, 6, 3, encoding), torch.randn(1, 2, 5, 5)
    else:
        layer, x = GroupSelfAttention("R4", 2, 3, 2, 6, 3, encoding, form), torch.randn(1, 2, 4, 5, 5)
    errors = S.attention_bias_errors(layer, x)
    assert errors["value"] < EXACT < 1e-3 < errors["query"]
    if encoding == "rotary":  # the planted failure: turned by position, the bias is no longer constant over keys
        gradient = torch.autograd.grad(layer(x).square().sum(), layer.query_key_value.bias)[0]
        query, key, _ = gradient.chunk(3)
        assert errors["key"] > 1e-3 and errors["key gradient"] == pytest.approx((key.norm() / query.norm()).item())
    else:
        assert max(errors["key"], errors["key gradient"]) < 1e-12


@pytest.mark.parametrize("module", [nn.Linear(8, 8), nn.MultiheadAttention(8, 2, bias=False, batch_first=True)])
def test_attention_without_biases_is_refused(module):
    with pytest.raises(ValueError, match="biases are known of"):
        S.attention_bias_errors(module, torch.randn(2, 6, 8))


def test_a_bias_before_a_norm():
    x, bias = torch.randn(10, 8), torch.randn(8)
    batch_norm, same = nn.BatchNorm1d(8), bias[:1].expand(8)
    assert S.bias_before_norm(batch_norm, x, bias) < EXACT
    assert batch_norm.num_batches_tracked == 0
    assert S.bias_before_norm(batch_norm.eval(), x, bias) > 0.1
    assert S.bias_before_norm(nn.LayerNorm(8), x, bias) > 0.1
    assert S.bias_before_norm(nn.LayerNorm(8), x, same) < EXACT
    assert S.bias_before_norm(nn.RMSNorm(8), x, same) > 0.1


def test_a_bias_is_the_mean_output():
    linear = nn.Linear(8, 3)
    assert S.bias_is_mean_error(linear, torch.randn(20, 8)) < EXACT
    linear.register_forward_hook(lambda layer, inputs, output: output.relu())  # planted: not linear
    assert S.bias_is_mean_error(linear, torch.randn(20, 8)) > 0.1
