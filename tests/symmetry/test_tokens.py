"""Tokens in another order: forward, backward, sets, read-outs and shuffled patches, each with a planted failure."""

import pytest
import torch
from torch import nn

import gsa
from gsa.symmetry import statements as S

pytestmark = pytest.mark.usefixtures("float64")

EXACT = 1e-13


def transformer(layers=2, dropout=0.0):
    layer = nn.TransformerEncoderLayer(8, 2, 12, dropout, batch_first=True)
    return spread(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False))


def spread(network):
    """Weights far from their start, so that no bias is zero and no norm trivial."""
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.5)
    return network


def block():
    """A whole block of ours with global attention that sees no position, as tokens."""
    options = gsa.nn.AttentionOptions(num_heads=2, head_dim=4, neighbourhood=None, encoding="constant")
    return S.OverTokens(gsa.nn.AttentionBlock("Z2", 8, 8, options, norm="channel"), (1, 2, 3))


NETWORKS = {
    "encoder": transformer,
    "attention": lambda: S.OverTokens(nn.MultiheadAttention(8, 2, batch_first=True)),
    "lifting": lambda: S.OverTokens(gsa.nn.LiftingSelfAttention("Z2", 8, 8, 2, 6, None, "constant"), (2, 3)),
    "block": block,
    "linear": lambda: nn.Linear(8, 8),
    "norm": lambda: nn.LayerNorm(8),
}


class Positioned(nn.Module):
    """Planted: a network that knows places."""

    def __init__(self, network):
        super().__init__()
        self.network, self.table = network, nn.Parameter(torch.randn(6, 8))

    def forward(self, tokens):
        return self.network(tokens + self.table)


@pytest.mark.parametrize("name", NETWORKS)
def test_forward_and_backward_of_permuted_tokens(name):
    network, tokens, order = NETWORKS[name](), torch.randn(2, 6, 8), torch.tensor([2, 0, 1, 5, 3, 4])
    target = torch.randn(2, 6, 8)

    def loss(output):
        return (output - target).square().sum()

    assert S.token_permutation_error(network, tokens, order) < EXACT
    errors = S.backward_errors(network, tokens, order, loss)
    assert errors.pop("weights, not put back") > 1e-2
    assert max(errors.values()) < EXACT

    planted = Positioned(network)
    assert S.token_permutation_error(planted, tokens, order) > 1e-2
    errors = S.backward_errors(planted, tokens, order, loss)
    assert min(errors.values()) > 1e-3, errors


def test_gradients_of_activations_are_judged_by_their_own_size():
    """Planted: places are told to tokens whose gradients are small beside those of others."""

    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.places = nn.Linear(8, 8), torch.linspace(0.9, 1.1, 6)[:, None]

        def forward(self, tokens):
            return 1e-3 * self.places * self.first(tokens)

    errors = S.backward_errors(Small(), torch.randn(2, 6, 8), torch.tensor([2, 0, 1, 5, 3, 4]), torch.sum)
    assert errors["activations"] > 1e-2


class Levelled(nn.Module):
    """Adds the same to all tokens, and takes it away with their mean: the gradient of that is zero but for rounding."""

    def __init__(self):
        super().__init__()
        self.level = nn.Linear(8, 8)

    def forward(self, tokens):
        tokens = tokens + self.level(tokens).mean(1, keepdim=True)
        return tokens - tokens.mean(1, keepdim=True)


def test_gradients_that_are_zero_but_for_rounding_are_no_errors():
    errors = S.backward_errors(Levelled(), torch.randn(2, 6, 8), torch.randperm(6), lambda z: z.pow(3).sum())
    assert errors["activations"] < 1e-10


def test_what_are_no_tokens_is_refused():
    with pytest.raises(ValueError, match="batch_first=True"):
        S.OverTokens(nn.MultiheadAttention(8, 2))
    with pytest.raises(ValueError, match=r"a grid of \(2, 2\) has 4 tokens, but got 6"):
        S.OverTokens(nn.Identity(), (2, 2))(torch.randn(1, 6, 8))


def test_gradients_of_a_linear_map():
    linear, x = nn.Linear(5, 3), torch.randn(7, 5)
    assert max(S.linear_gradient_errors(linear, x, lambda y: y.square().sum()).values()) < EXACT
    twice = nn.Linear(5, 3)
    twice.forward = lambda x: 2 * nn.functional.linear(x, twice.weight)  # planted: not A Wᵀ
    assert min(S.linear_gradient_errors(twice, x, lambda y: y.square().sum()).values()) > 0.1


def test_permutation_matrices():
    order = torch.tensor([1, 2, 0])  # the recap's 2, 3, 1
    assert S.permutation_matrix(order).tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    x = torch.arange(1.0, 13.0).view(3, 4)
    assert (S.permutation_matrix(order) @ x).tolist() == [[5, 6, 7, 8], [9, 10, 11, 12], [1, 2, 3, 4]]
    assert max(S.permutation_matrix_errors(torch.randn(5, 5), torch.randperm(5)).values()) == 0
    with pytest.raises(ValueError, match="holds each of 0 to n − 1 once"):
        S.permutation_matrix(torch.tensor([0, 0, 1]))


def test_a_permutation_is_undone_without_arithmetic():
    """Planted: a matrix of another kind has an inverse that is to be computed."""
    order, other = torch.randperm(7), torch.randn(7, 7)
    p = S.permutation_matrix(order)
    assert p.mT.data_ptr() == p.data_ptr() and torch.equal(p.mT, torch.linalg.inv(p))
    assert torch.equal(p.mT, S.permutation_matrix(order.argsort()))
    assert not torch.allclose(other.mT, torch.linalg.inv(other))


@pytest.mark.parametrize("f", [torch.sigmoid, torch.relu, torch.mul, torch.add, lambda a: a.softmax(1)])
def test_functions_of_entries(f):
    matrices = torch.randn(2, 4, 5)[: 1 if f not in (torch.mul, torch.add) else 2]
    rows, columns = torch.tensor([2, 0, 3, 1]), torch.tensor([1, 0, 4, 2, 3])
    assert S.entrywise_error(f, rows, columns, *matrices) < EXACT
    assert S.entrywise_error(lambda *m: f(*m).cumsum(1), rows, columns, *matrices) > 1e-2  # planted


def test_the_example_of_nine_numbers_and_a_sigmoid():
    """Of 1 to 9, with the first and the last *column* changing places, which the text calls rows."""
    z = torch.arange(1.0, 10.0).view(3, 3)
    order = torch.tensor([2, 1, 0])
    p = S.permutation_matrix(order)
    assert p.tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]] and torch.equal(z @ p, z[:, order])
    assert torch.allclose(torch.sigmoid(z @ p), torch.sigmoid(z) @ p)
    assert not torch.allclose(torch.sigmoid(p @ z), torch.sigmoid(z) @ p)  # planted: its rows
    assert S.entrywise_error(torch.sigmoid, torch.arange(3), order, z) == 0


def test_a_sum_has_permutation_symmetry():
    x, order = torch.randn(9, 2), torch.randperm(9)
    assert S.invariance_error(lambda x: x.sum(0), x, order) < EXACT
    assert S.invariance_error(lambda x: x.cumsum(0).sum(0), x, order) > 1e-2  # planted


class SetNetwork(nn.Module):
    """A transformer and the mean of its tokens, or, planted, a mean that favours the first."""

    def __init__(self, favour=0.0, dropout=0.2):
        super().__init__()
        self.encoder, self.head, self.favour = transformer(1, dropout), nn.Linear(8, 3), favour

    def forward(self, x):
        x = self.encoder(x)
        return self.head(x.mean(1) + self.favour * x[:, 0])


class SetTransformer(nn.Module):
    """Attention through three points that are learned, and a token that asks all elements: Lee et al. 2019."""

    def __init__(self, dropout=0.2):
        super().__init__()
        self.points, self.seed = nn.Parameter(torch.randn(1, 3, 8)), nn.Parameter(torch.randn(1, 1, 8))
        self.gather, self.spread, self.pool = (nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(3))
        self.norm, self.dropout, self.head = nn.LayerNorm(8), nn.Dropout(dropout), nn.Linear(8, 3)

    def forward(self, x):
        held, _ = self.gather(self.points.expand(len(x), -1, -1), x, x)
        x = self.dropout(self.norm(x + self.spread(x, held, held)[0]))
        pooled, _ = self.pool(self.seed.expand(len(x), -1, -1), x, x)
        return self.head(pooled[:, 0])


def test_a_set_transformer_is_invariant_forward_and_in_its_weights():
    arguments = torch.randn(2, 6, 8), torch.tensor([2, 0, 1, 5, 3, 4]), lambda output: output.square().sum()
    errors = S.set_order_errors(SetTransformer(), *arguments)
    same = {"output", "weights", "elements, equivariant"}
    assert max(errors[name] for name in same) < EXACT
    assert min(error for name, error in errors.items() if name not in same) > 1e-2
    planted = S.set_order_errors(nn.Sequential(Positioned(nn.Identity()), SetTransformer()), *arguments)
    assert min(planted[name] for name in same) > 1e-2


def test_what_the_order_of_a_set_changes():
    tokens, order = torch.randn(2, 6, 8), torch.tensor([2, 0, 1, 5, 3, 4])

    def loss(output):
        return output.square().sum()

    errors = S.set_order_errors(SetNetwork(), tokens, order, loss)
    same = {"output", "weights", "elements, equivariant"}
    assert max(errors[name] for name in same) < EXACT
    assert min(error for name, error in errors.items() if name not in same) > 1e-2
    assert S.set_order_errors(SetNetwork(dropout=0.0), tokens, order, loss)["weights, dropout"] < EXACT
    assert S.set_order_errors(SetNetwork(), tokens, torch.arange(6), loss)["weights, dropout"] == 0  # by one mask
    planted = S.set_order_errors(SetNetwork(favour=1.0), tokens, order, loss)
    assert min(planted[name] for name in same) > 1e-2


def test_which_readouts_forget_the_order():
    network, tokens, order = transformer(), torch.randn(2, 6, 8), torch.tensor([2, 0, 1, 5, 3, 4])
    arguments = tokens, order, torch.randn(8), torch.randn(48, 3)
    errors = S.readout_errors(network, *arguments)
    assert errors.pop("concatenation") > 1e-2
    assert max(errors.values()) < EXACT

    def planted(tokens):
        return network(tokens + torch.arange(tokens.shape[1])[:, None])

    assert min(S.readout_errors(planted, *arguments).values()) > 1e-2


def test_a_set_network_stays_as_it_is():
    network = nn.Sequential(nn.Flatten(0, 1), nn.BatchNorm1d(8), nn.Unflatten(0, (2, 6)), SetNetwork()).eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    S.set_order_errors(network, torch.randn(2, 6, 8), torch.randperm(6), torch.sum)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert not any(module.training for module in network.modules())


class InPlace(nn.Module):
    """Equivariant, and changes what it is given."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(4, 4)

    def forward(self, tokens):
        return self.map(tokens.sub_(1.0).div_(2.0))


def test_modules_that_work_in_place_are_judged_alike_and_leave_the_tokens():
    tokens, order = torch.rand(2, 5, 4), torch.tensor([3, 0, 4, 1, 2])
    before, module = tokens.clone(), InPlace()
    assert S.token_permutation_error(module, tokens, order) < 1e-15
    errors = S.readout_errors(module, tokens, order, torch.rand(4), torch.rand(20, 3))
    assert max(errors[name] for name in ("class token", "max", "mean")) < 1e-14
    assert S.backward_errors(module, tokens, order, lambda output: output.square().sum())["tokens"] < 1e-14
    assert torch.equal(tokens, before)


@pytest.mark.parametrize("order", [torch.arange(4), torch.zeros(5).long()])
def test_orders_that_are_none_of_the_tokens_are_refused(order):
    tokens = torch.rand(2, 5, 4)
    for measure in (
        lambda: S.token_permutation_error(torch.relu, tokens, order),
        lambda: S.backward_errors(torch.nn.Linear(4, 4), tokens, order, torch.sum),
        lambda: S.readout_errors(torch.relu, tokens, order, torch.rand(4), torch.rand(20, 3)),
        lambda: S.set_order_errors(torch.nn.Linear(4, 4), tokens, order, torch.sum),
        lambda: S.entrywise_error(torch.relu, order, torch.randperm(4), tokens[0]),
        lambda: S.entrywise_error(torch.relu, torch.randperm(4), order, tokens[0].T),
        lambda: S.invariance_error(torch.sum, tokens[0], order),
        lambda: S.attention_order_errors(lambda q, k, v: v, tokens, tokens, tokens, order, torch.randperm(5)),
        lambda: S.attention_order_errors(lambda q, k, v: v, tokens, tokens, tokens, torch.randperm(5), order),
    ):
        with pytest.raises(ValueError, match="order"):
            measure()
