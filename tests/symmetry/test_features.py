"""Features in another order with weights PᵀWP, forward, in training and as a cipher, each with a planted failure."""

import pytest
import torch
from torch import nn

import gsa
from gsa.symmetry import statements as S

pytestmark = pytest.mark.usefixtures("float64")

EXACT = 1e-13
HEADS, CHANNELS = 2, 8


def encoder():
    layer = nn.TransformerEncoderLayer(CHANNELS, HEADS, 12, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), 4, 6


def attention():
    return S.OverTokens(nn.MultiheadAttention(CHANNELS, HEADS, batch_first=True)), 4, 6


def ours():
    """A window sees which pixels are neighbours: features alone are permuted."""
    layer = gsa.nn.GroupSelfAttention("R4", CHANNELS, CHANNELS, HEADS, 6, 3, "constant", "regular")
    return S.OverTokens(layer, (4, 4, 4)), 6, None


NETWORKS = {"encoder": encoder, "attention": attention, "ours": ours}


def made(name):
    """Network, tokens, shuffle, loss."""
    network, head_dim, count = NETWORKS[name]()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.4)
    tokens, target = torch.randn(2, 2, count or 64, CHANNELS)
    rows = None if count is None else torch.randperm(count)
    shuffle = S.Shuffle(torch.randperm(CHANNELS), rows, S.head_order(HEADS, head_dim), torch.randperm(12))
    return network, tokens, shuffle, lambda output: (output - target).square().mean()


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_a_network_in_another_order_stays_one_in_training(name, optimizer):
    network, *arguments = made(name)
    errors = S.conjugate_training_errors(network, *arguments, lambda weights: optimizer(weights, 0.01))
    assert errors.pop("moved") > 1e-3
    adam = optimizer is torch.optim.Adam  # divides rounding by its eps where a gradient is zero
    assert errors.pop("trained weights") < (1e-7 if adam else EXACT)
    assert max(errors.values()) < EXACT


def test_a_frozen_parameter_stays_in_training():
    network, *arguments = made("encoder")
    network.layers[0].linear1.weight.requires_grad_(False)
    errors = S.conjugate_training_errors(network, *arguments)
    assert errors.pop("moved") > 1e-3 and max(errors.values()) < EXACT


def test_from_other_weights_training_ends_elsewhere():
    network, *arguments = made("encoder")
    errors = S.conjugate_training_errors(network, *arguments, start=network)  # planted
    assert min(errors[name] for name in ("output", "gradients", "trained output", "trained weights")) > 1e-1


@pytest.mark.parametrize("name", NETWORKS)
def test_the_permuted_network_works_on_permuted_data_only(name):
    network, tokens, shuffle, _ = made(name)
    errors = S.encryption_errors(network, tokens, shuffle)
    assert errors["with the key"] < EXACT
    assert min(errors["plain data"], errors["plain network"]) > 0.1
    across = torch.arange(len(shuffle.inner)).view(HEADS, -1).T.flatten()  # planted: mixes channels of different heads
    mixed = S.Shuffle(shuffle.order, shuffle.rows, across, shuffle.hidden)
    assert S.encryption_errors(network, tokens, mixed)["with the key"] > 1e-2


def test_the_same_order_on_both_sides_where_it_respects_the_heads():
    """W_P = PᵀWP to the letter; with one head, any P."""
    for heads, order in ((HEADS, S.head_order(HEADS, CHANNELS // HEADS)), (1, torch.randperm(CHANNELS))):
        network = nn.TransformerEncoderLayer(CHANNELS, heads, 12, batch_first=True)
        tokens = torch.randn(2, 6, CHANNELS)
        assert S.encryption_errors(network, tokens, S.Shuffle(order))["with the key"] < EXACT


def test_what_has_no_known_twin_is_refused():
    order = torch.randperm(4)
    layer = gsa.nn.GroupSelfAttention("R4", 4, 4, 2, 6, 3, "functional")
    with pytest.raises(ValueError, match="encoding.* is not known"):
        S.feature_orders(layer, order, torch.randperm(12))
    for wrong in ({"order": torch.zeros(4).long()}, {"order": order, "rows": torch.tensor([0, 2])}):
        with pytest.raises(ValueError, match="an order is one list"):
            S.Shuffle(**wrong)
    with pytest.raises(ValueError, match="orders must be of parameters"):
        S.twin(nn.Linear(4, 4), {"weights": (order,)})


def test_an_order_of_features_passes_through_linear_maps():
    """ZP·PᵀW₁P·PᵀW₂P = (ZW₁)W₂P; without the last P, as one line has it, it does not hold, nor does ZPW = ZW."""
    z, first, second = torch.randn(6, 8), torch.randn(8, 8), torch.randn(8, 8)
    p = S.permutation_matrix(torch.tensor([3, 0, 7, 1, 6, 2, 5, 4]))
    passed = (z @ p) @ (p.T @ first @ p) @ (p.T @ second @ p)
    assert gsa.symmetry.relative_error(z @ p @ (p.T @ first), z @ first) < EXACT
    assert gsa.symmetry.relative_error(passed, z @ first @ second @ p) < EXACT
    assert gsa.symmetry.relative_error(z @ p @ first, z @ first) > 0.1
    assert gsa.symmetry.relative_error(passed, z @ first @ second) > 0.1
