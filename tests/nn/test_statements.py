"""What is known of attention and permutations, each with a planted failure.

q·b_k cancels in the softmax; tokens and channels of a transformer can be permuted, with weights and gradients
conjugate; heads limit which permutations of channels are allowed.
"""

import copy
import itertools

import pytest
import torch

import gsa
from gsa import ops
from gsa.nn import GroupSelfAttention, LiftingSelfAttention

pytestmark = pytest.mark.usefixtures("float64")


def tokens():
    """Global attention without position over 2×3 tokens, as (query, key, value) and a function of them."""
    query, key, value = torch.randn(3, 1, 2, 1, 2, 3, 4)
    spatial, pose, window = torch.zeros(1, 3, 5, 4), torch.zeros(1, 1, 4), torch.ones(3, 5, dtype=torch.bool)
    return (query, key, value), lambda q, k, v: ops.attend(q, k, v, spatial, pose, window)


def permute(x, order):
    return x.flatten(3, 4)[..., order, :].view_as(x)


def test_attention_is_equivariant_in_queries_and_invariant_in_keys_with_values():
    (query, key, value), attend = tokens()
    order, expected = torch.randperm(6), attend(query, key, value)
    torch.testing.assert_close(attend(permute(query, order), key, value), permute(expected, order))
    torch.testing.assert_close(attend(query, permute(key, order), permute(value, order)), expected)
    assert not torch.allclose(attend(query, permute(key, order), value), expected)  # planted: keys alone


def biases(layer):
    """Views on the biases of query, key and value."""
    return layer.query_key_value.bias.data.view(3, -1)


@pytest.mark.parametrize(
    "form, encoding",
    [
        *itertools.product(("lifting", "regular", "summed"), ("functional", "table", "fourier", "constant")),
        ("lifting", "rotary"),
        ("regular", "rotary"),
    ],
)
def test_biases(form, encoding):
    if form == "lifting":
        layer, x = LiftingSelfAttention("R4", 2, 3, 2, 6, 3, encoding), torch.randn(1, 2, 5, 5)
    else:
        layer, x = GroupSelfAttention("R4", 2, 3, 2, 6, 3, encoding, form), torch.randn(1, 2, 4, 5, 5)
    before = layer(x)
    layer(x).square().sum().backward()
    query_gradient, key_gradient, _ = layer.query_key_value.bias.grad.view(3, -1).abs().amax(1)

    biases(layer)[1] += 1  # keys: adds q·b_k to every score
    cancels = encoding != "rotary"  # turned by position, the bias is no longer constant over keys
    assert torch.allclose(layer(x), before) == cancels
    assert (key_gradient < 1e-10 * query_gradient) == cancels
    biases(layer)[1] -= 1

    biases(layer)[2] += 1  # values: adds b_v, once for every softmax
    times = 4 if form == "summed" else 1
    expected = before + times * layer.out.weight.sum(1).view(-1, 1, 1, 1)
    torch.testing.assert_close(layer(x), expected)
    biases(layer)[2] -= 1

    biases(layer)[0] += 1  # queries: changes the scores
    assert not torch.allclose(layer(x), before)


def test_permuting_tokens_and_permuting_back_leaves_every_gradient():
    layer = LiftingSelfAttention("Z2", 3, 3, 2, 6, neighbourhood=None, encoding="constant")
    x, order = torch.randn(2, 3, 4, 4), torch.randperm(16)
    target = torch.randn(2, 3, 16)

    def gradients(x, back):
        loss = (layer(x)[:, :, 0].flatten(2)[..., back] - target).square().sum()
        return torch.autograd.grad(loss, [*layer.query_key_value.parameters(), *layer.out.parameters()])

    plain = gradients(x, torch.arange(16))
    shuffled = gradients(x.flatten(2)[..., order].view_as(x), order.argsort())
    for a, b in zip(plain, shuffled, strict=True):
        torch.testing.assert_close(a, b)
    forgotten = gradients(x.flatten(2)[..., order].view_as(x), torch.arange(16))  # planted: not put back
    assert not torch.allclose(plain[0], forgotten[0])


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_training_stays_conjugate_when_channels_and_weights_are_permuted(optimizer):
    """f_P(xP) = f(x)P for W_P = PᵀWP, at the start and after steps of an element-wise optimizer."""
    heads, d, channels = 2, 6, 4
    layer = GroupSelfAttention("R4", channels, channels, heads, d, 3, encoding="constant", form="regular")
    order = torch.randperm(channels)
    inner = torch.cat([h * d + torch.randperm(d) for h in torch.randperm(heads)])  # respects the heads
    twin = conjugate(layer, order, inner)
    x, target = torch.randn(1, channels, 4, 4, 4), torch.randn(1, channels, 4, 4, 4)
    torch.testing.assert_close(twin(x[:, order]), layer(x)[:, order])
    for module, permuted in ((layer, False), (twin, True)):
        steps = optimizer(module.parameters(), 0.01)
        for _ in range(3):
            a, b = (x[:, order], target[:, order]) if permuted else (x, target)
            steps.zero_grad()
            (module(a) - b).square().mean().backward()
            steps.step()
    torch.testing.assert_close(twin(x[:, order]), layer(x)[:, order])
    trained = conjugate(layer, order, inner)
    if optimizer is torch.optim.SGD:  # Adam divides noise by noise where the gradient of the key bias is zero
        for (name, a), b in zip(twin.named_parameters(), trained.parameters(), strict=True):
            torch.testing.assert_close(a, b, msg=name)

    across = torch.arange(heads * d).view(heads, d).T.flatten()  # planted: mixes channels of different heads
    assert not torch.allclose(conjugate(layer, order, across)(x[:, order]), layer(x)[:, order])


def conjugate(layer, order, inner):
    """The layer for permuted channels: Wᵀ → PᵀWᵀ and so on, `inner` permuting the channels of all heads."""
    twin = copy.deepcopy(layer)
    with torch.no_grad():
        three = layer.query_key_value.weight.view(3, -1, layer.in_channels)[:, inner][..., order]
        twin.query_key_value.weight.copy_(three.flatten(0, 1))
        twin.query_key_value.bias.copy_(layer.query_key_value.bias.view(3, -1)[:, inner].flatten())
        twin.out.weight.copy_(layer.out.weight[order][:, inner])
        twin.out.bias.copy_(layer.out.bias[order])
    return twin


def test_hidden_units_of_the_mlp_can_be_permuted_and_equal_ones_stay_equal():
    options = gsa.nn.AttentionOptions(num_heads=1, head_dim=6, neighbourhood=3)
    block = gsa.nn.AttentionBlock("R4", 2, 4, options, norm="channel")
    x, twin = torch.randn(1, 2, 4, 4, 4), copy.deepcopy(block)
    first, hidden_norm, last = block.mlp[2], block.mlp[3], block.mlp[5]
    order = torch.tensor([1, 0])
    with torch.no_grad():
        twin.mlp[2].weight.copy_(first.weight[order])
        twin.mlp[2].bias.copy_(first.bias[order])
        twin.mlp[3].weight.copy_(hidden_norm.weight[order])
        twin.mlp[3].bias.copy_(hidden_norm.bias[order])
        twin.mlp[5].weight.copy_(last.weight[:, order])
    torch.testing.assert_close(twin(x), block(x))

    for parameter in (first.weight, first.bias, last.weight):
        torch.nn.init.constant_(parameter, 0.3)
    optimizer = torch.optim.SGD(block.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        block(x).square().mean().backward()
        optimizer.step()
    assert torch.equal(first.weight[0], first.weight[1]) and torch.equal(last.weight[:, 0], last.weight[:, 1])
