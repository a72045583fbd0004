"""Hidden units can change places, and equal ones stay equal; each with a planted failure."""

import copy
import itertools
import math

import pytest
import torch
from torch import nn

import gsa
from gsa.symmetry import statements as S

pytestmark = pytest.mark.usefixtures("float64")

EXACT = 1e-13


def mlp(activation=nn.Sigmoid):
    return nn.Sequential(nn.Linear(3, 4), activation(), nn.Linear(4, 2))


def deep(dropout=0.0):
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(dropout), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))


def data():
    return torch.randn(9, 3), torch.randn(9, 2)


def test_an_example_by_hand():
    """Two samples, three hidden units, two outputs; the first two units change places."""
    network = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    weights = {
        "0.weight": [[1, 0], [0, 1], [-1, 1]],  # a row for every hidden unit: W¹ transposed
        "0.bias": [0, 1, 0],
        "2.weight": [[1, 0, 1], [0, 1, 1]],
        "2.bias": [0, 1],
    }
    network.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    twin = S.twin(network, S.hidden_orders(network, torch.tensor([1, 0, 2])))
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert network[:2](x).tolist() == [[1, 3, 1], [3, 5, 1]] and twin[:2](x).tolist() == [[3, 1, 1], [5, 3, 1]]
    assert network(x).tolist() == twin(x).tolist() == [[2, 5], [4, 7]]
    assert twin[2].weight.tolist() == [[0, 1, 1], [1, 0, 1]]


class Sums(nn.Module):
    """Planted: not a function of each entry."""

    def forward(self, x):
        return x.cumsum(-1)


class Undefined(nn.Module):
    """Planted: not a number."""

    def forward(self, x):
        return (-x.abs()).log()


@pytest.mark.parametrize("network, layer", [(mlp, 0), (deep, 0), (deep, 1)])
def test_hidden_units_in_another_order(network, layer):
    order = torch.tensor([2, 0, 3, 1]) if layer == 0 else torch.tensor([4, 2, 0, 1, 3])
    assert max(S.hidden_unit_errors(network(), *data(), order, layer).values()) < EXACT


def test_a_function_of_several_units_is_noticed():
    assert min(S.hidden_unit_errors(mlp(Sums), *data(), torch.tensor([2, 0, 3, 1])).values()) > 1e-3


def test_other_orders_are_other_networks():
    """Only W¹ permuted, or its rows (the inputs), or b¹ left out: another function."""
    network, (x, _), order = mlp(), data(), torch.tensor([2, 0, 3, 1])
    whole = S.hidden_orders(network, order)
    assert gsa.symmetry.relative_error(S.twin(network, whole)(x), network(x)) < EXACT
    for planted in (
        {"0.weight": (order, None)},
        {"0.weight": (None, torch.tensor([1, 2, 0]))},
        {name: axes for name, axes in whole.items() if name != "0.bias"},
        whole | {"2.bias": (torch.tensor([1, 0]),)},
    ):
        assert gsa.symmetry.relative_error(S.twin(network, planted)(x), network(x)) > 1e-3


def test_gradients_of_the_last_layer():
    assert max(S.output_gradient_errors(mlp(), *data()).values()) < EXACT
    doubled = mlp()
    doubled[2].register_full_backward_hook(lambda *_: None)
    doubled[2].weight.register_hook(lambda gradient: 2 * gradient)  # planted
    assert S.output_gradient_errors(doubled, *data())["weight"] > 0.1


def test_all_orders_are_one_function():
    found = S.equivalent_networks(deep(), data()[0])
    assert found["twins"] == 24 and max(found["output"], found["norm"]) < EXACT and found["distance"] > 0.1
    alike = S.constant_start(mlp())
    alike[0].weight.data[0] += 1  # the others are one unit, and can change places
    assert S.equivalent_networks(alike, data()[0])["distance"] == 0
    assert S.equivalent_networks(mlp(Sums), data()[0])["output"] > 1e-2  # planted
    with pytest.raises(ValueError, match="at most 7 hidden units, but has 8"):
        S.equivalent_networks(nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 2)), data()[0])
    assert math.isnan(S.equivalent_networks(mlp(Undefined), data()[0])["output"])


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize("network", [mlp, deep])
def test_constant_weights_are_one_unit_for_ever(network, optimizer):
    def steps(weights):
        return optimizer(weights, 0.05)

    errors = S.equal_units_errors(S.constant_start(network(), 0.3), *data(), steps)
    assert errors["moved"] > 0.1
    assert max(errors[name] for name in ("gradients", "units", "one unit")) < EXACT
    assert errors["entries"] > 0.1  # the same for every unit, not for every input
    for planted in (network(), S.constant_start(deep(0.3), 0.3)):  # random, or told apart by dropout
        errors = S.equal_units_errors(planted, *data(), steps)
        assert min(errors["gradients"], errors["units"]) > 1e-2


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_minibatches_do_not_tell_equal_units_apart(optimizer):
    """Nor does W¹ stay a matrix of one number, unless the inputs are alike; planted: dropout."""

    def found(network, x):
        steps = dict(steps=50, batch=3, optimizer=lambda weights: optimizer(weights, 0.05))
        return S.equal_units_errors(S.constant_start(network, 0.3), x, data()[1], **steps)

    errors = found(mlp(), data()[0])
    assert errors["units"] < EXACT and errors["trained entries"] > 1e-3
    assert found(mlp(), torch.randn(9, 1).expand(9, 3))["trained entries"] < EXACT
    assert found(deep(0.3), data()[0])["units"] > 1e-2


def test_no_order_of_the_outgoing_weights_makes_up_for_permuted_inputs():
    """Rows of W¹ in another order; planted: the inputs, too."""
    network, (x, _) = mlp(nn.Tanh), (torch.randn(200, 3), None)
    rows = torch.tensor([1, 2, 0])
    other, expected = S.twin(network, {"0.weight": (None, rows)}), network(x)
    twins = [S.twin(other, {"2.weight": (None, torch.tensor(p))}) for p in itertools.permutations(range(4))]
    assert min(gsa.symmetry.relative_error(found(x), expected) for found in twins) > 1e-2
    hidden = torch.cat((other[:2](x), torch.ones(200, 1)), dim=1)  # nor do any others, with any bias
    assert gsa.symmetry.relative_error(hidden @ torch.linalg.lstsq(hidden, expected).solution, expected) > 1e-2
    assert gsa.symmetry.relative_error(other(x[:, rows]), expected) < EXACT


def test_equal_incoming_weights_alone_are_not_enough():
    network = S.constant_start(mlp())
    nn.init.normal_(network[2].weight)
    assert S.equal_units_errors(network, *data())["gradients"] > 0.1


def test_one_feature_has_gradients_all_alike():
    """c′ times a matrix of ones, as it is said: where the inputs are alike too."""
    network, target = S.constant_start(mlp()), torch.randn(9, 2)
    assert S.equal_units_errors(network, torch.randn(9, 1).expand(9, 3), target)["entries"] < EXACT


def test_what_is_no_mlp_is_refused():
    with pytest.raises(ValueError, match="linear layers, two or more"):
        S.hidden_orders(nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)), torch.randperm(4))
    square = nn.Linear(3, 3)
    with pytest.raises(ValueError, match="weights of their own"):
        S.hidden_orders(nn.Sequential(square, nn.Tanh(), square, nn.Linear(3, 2)), torch.randperm(3))
    with pytest.raises(ValueError, match="the last layer must have a weight and a bias"):
        S.output_gradient_errors(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2, bias=False)), *data())


@pytest.mark.parametrize("layer", [-1, 1, 2])
def test_layers_that_are_not_hidden_are_refused(layer):
    for measure in (
        lambda: S.hidden_orders(mlp(), torch.randperm(4), layer),
        lambda: S.hidden_unit_errors(mlp(), *data(), torch.randperm(4), layer),
        lambda: S.equivalent_networks(mlp(), data()[0], layer),
    ):
        with pytest.raises(ValueError, match=f"numbered from 0 to 0, but got {layer}"):
            measure()


@pytest.mark.parametrize("order", [[0, 0, 1, 2], [0, 1, 2]])
def test_what_is_no_order_of_the_hidden_units_is_refused(order):
    order = torch.tensor(order)
    for measure in (
        lambda: S.hidden_orders(mlp(), order),
        lambda: S.hidden_unit_errors(mlp(), *data(), order),
        lambda: S.twin(mlp(), {"0.weight": (order, None)}),
    ):
        with pytest.raises(ValueError, match="order"):
            measure()


def test_a_frozen_parameter_has_a_gradient_of_zero():
    network, order = mlp(), torch.tensor([2, 0, 3, 1])
    network[0].bias.requires_grad_(False)
    assert max(S.hidden_unit_errors(network, *data(), order).values()) < EXACT
    with pytest.raises(ValueError, match="expected a parameter that is trained, but Sequential has none"):
        S.hidden_unit_errors(network.requires_grad_(False), *data(), order)


def test_hidden_units_of_a_block():
    """The block's mlp has a norm among its hidden units, whose gains are permuted along."""
    options = gsa.nn.AttentionOptions(num_heads=1, head_dim=6, neighbourhood=3)
    block = gsa.nn.AttentionBlock("R4", 2, 4, options, norm="channel")
    x, order = torch.randn(1, 2, 4, 4, 4), torch.tensor([1, 0])
    rows = {f"mlp.{layer}.{name}": (order,) for layer in (2, 3) for name in ("weight", "bias")}
    nn.init.normal_(block.mlp[3].weight)
    twin = S.twin(block, rows | {"mlp.5.weight": (None, order)})
    assert gsa.symmetry.relative_error(twin(x), block(x)) < EXACT
    assert gsa.symmetry.relative_error(S.twin(block, rows)(x), block(x)) > 1e-2  # planted

    first, last = block.mlp[2], block.mlp[5]
    for parameter in (first.weight, first.bias, block.mlp[3].weight, last.weight):
        nn.init.constant_(parameter, 0.3)
    optimizer = torch.optim.SGD(block.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        block(x).square().mean().backward()
        optimizer.step()
    assert torch.equal(first.weight[0], first.weight[1]) and torch.equal(last.weight[:, 0], last.weight[:, 1])


def test_units_of_a_training_that_has_come_apart_are_not_called_equal():
    errors = S.equal_units_errors(
        S.constant_start(mlp(), 0.3), *data(), lambda weights: torch.optim.SGD(weights, 1e200), steps=5
    )
    assert math.isnan(errors["units"])


def test_a_twin_stays_one_under_minibatches():
    """Of any sequence of batches, as long as both are given the same."""
    network = mlp()
    orders = S.hidden_orders(network, torch.tensor([2, 0, 3, 1]))
    other, (x, target) = S.twin(network, orders), data()
    first = network[0].weight.clone()
    for trained in (network, other):
        optimizer, generator = torch.optim.SGD(trained.parameters(), 0.1), torch.Generator().manual_seed(1)
        for _ in range(10):
            batch = torch.randperm(len(x), generator=generator)[:3]
            optimizer.zero_grad()
            (trained(x[batch]) - target[batch]).square().sum().backward()
            optimizer.step()
    expected = S.twin(network, orders)
    for weight, there in zip(other.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(weight, there, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(network[0].weight, first)


def test_what_a_single_unit_does_is_done_by_another_in_a_twin():
    """So the importance of a unit by its place says nothing."""
    network, order = mlp(), [2, 0, 3, 1]
    other, (x, _) = S.twin(network, S.hidden_orders(network, torch.tensor(order))), data()

    def without(of, unit):
        silenced = copy.deepcopy(of)
        silenced[2].weight.data[:, unit] = 0
        return silenced(x)

    for place, unit in enumerate(order):
        torch.testing.assert_close(without(other, place), without(network, unit))
        assert not torch.allclose(without(other, place), without(network, place))


def test_other_starts_end_in_other_solutions_that_are_as_good():
    x, target = torch.rand(6, 3), torch.rand(6, 2)

    def trained():
        network = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
        optimizer = torch.optim.Adam(network.parameters(), 0.03)
        for _ in range(1500):
            optimizer.zero_grad()
            (network(x) - target).square().mean().backward()
            optimizer.step()
        return network

    one, two = trained(), trained()
    assert all((network(x) - target).square().mean() < 1e-4 for network in (one, two))
    twins = (S.twin(two, S.hidden_orders(two, torch.tensor(order))) for order in itertools.permutations(range(5)))
    assert min(gsa.symmetry.relative_error(twin[0].weight, one[0].weight) for twin in twins) > 0.1
