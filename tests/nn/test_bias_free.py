"""Attention without biases: none is there, everything else is as it was."""

import pytest
import torch

import gsa
from gsa.nn import AttentionOptions, GroupSelfAttention, LiftingSelfAttention
from gsa.symmetry import equivariance_error, relative_error

pytestmark = pytest.mark.usefixtures("float64")

CASES = [
    *[(form, encoding) for form in ("lifting", "regular", "summed") for encoding in ("functional", "constant")],
    ("lifting", "rotary"),
    ("regular", "rotary"),
    ("regular", "positional"),
]


def layer(form, encoding, **options):
    """A layer from three channels to four, and its input."""
    torch.manual_seed(0)
    options |= {"num_heads": 2, "head_dim": 6, "neighbourhood": 3, "encoding": encoding}
    if encoding == "positional":
        options |= {"encoding": "quadratic", "positional_heads": 1}
    if form == "lifting":
        return LiftingSelfAttention("R4", 3, 4, **options), torch.randn(1, 3, 5, 5)
    return GroupSelfAttention("R4", 3, 4, form=form, **options), torch.randn(1, 3, 4, 5, 5)


@pytest.mark.parametrize("form, encoding", CASES)
def test_layers_without_biases_keep_their_symmetry(form, encoding):
    free, x = layer(form, encoding, bias=False)
    plain, _ = layer(form, encoding)
    biases = {"query_key_value.bias", "out.bias"}
    assert set(plain.state_dict()) - set(free.state_dict()) == biases
    assert set(free.state_dict()) < set(plain.state_dict())
    assert max(equivariance_error(free, x, "R4").values()) < 1e-13

    for name, parameter in free.named_parameters():  # the same random stream
        assert torch.equal(parameter, plain.get_parameter(name))
    assert relative_error(plain(x), free(x)) < 1e-14  # biases start at zero
    assert free(torch.zeros_like(x)).abs().max() == 0
    for name in biases:
        torch.nn.init.ones_(plain.get_parameter(name))
    assert plain(torch.zeros_like(x)).abs().max() > 0.1  # planted: with biases, nothing comes to something
    assert relative_error(plain(x), free(x)) > 1e-2


def test_networks_without_biases_in_their_attention():
    free, plain = (gsa.create_model("digits_r4_sa", bias=bias) for bias in (False, True))
    for network, has_biases in ((free, False), (plain, True)):
        attention = [m for m in network.modules() if isinstance(m, gsa.nn.SelfAttention)]
        assert {m.bias is not None for layer in attention for m in (layer.query_key_value, layer.out)} == {has_biases}
    assert set(plain.state_dict()) == set(gsa.create_model("digits_r4_sa").state_dict())
    assert max(equivariance_error(free, torch.rand(1, 1, 12, 12), "R4").values()) < 1e-12


def test_another_value_is_refused():
    with pytest.raises(ValueError, match="bias must be True or False, but got 'none'"):
        AttentionOptions(bias="none")
