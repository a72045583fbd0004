"""Equivalent minima: what lies between them, how many parameters they waste, and units that are put back."""

import math
from itertools import permutations

import pytest
import torch
from torch import nn

import gsa
from gsa.symmetry import statements as S
from gsa.symmetry.statements._gradients import flat

pytestmark = pytest.mark.usefixtures("float64")

SIDE = torch.linspace(-2, 2, 7, dtype=torch.float64)
X = torch.cartesian_prod(SIDE, SIDE)
PRODUCT = X.prod(1, keepdim=True)


def mlp(units=5, dropout=0.0):
    return nn.Sequential(nn.Linear(2, units), nn.Tanh(), nn.Dropout(dropout), nn.Linear(units, 1))


def loss(network):
    return (network(X) - PRODUCT).square().mean()


def trained(network, steps=600, batch=None):
    optimizer = torch.optim.Adam(network.train().parameters(), 0.05)
    for _ in range(steps):
        rows = torch.randperm(len(X))[:batch]
        optimizer.zero_grad()
        (network(X[rows]) - PRODUCT[rows]).square().mean().backward()
        optimizer.step()
    return network.eval()


@pytest.fixture(scope="module")
def product():
    """A network that has learned the product of two numbers."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    return trained(mlp())


def test_between_a_network_and_its_twins_the_loss_rises(product):
    other = S.twin(product, S.hidden_orders(product, torch.tensor([3, 0, 4, 1, 2])))
    assert gsa.symmetry.relative_error(loss(other), loss(product)) < 1e-12 and loss(product) < 0.1
    assert S.barrier(product, other, loss) > 0.5
    assert S.barrier(product, product, loss) < 1e-12  # planted: no way to go
    again = S.closest_twin(product, other)
    assert gsa.symmetry.relative_error(flat(again.parameters()), flat(product.parameters())) < 1e-13
    assert S.barrier(product, again, loss) < 1e-12
    assert [len(layer.weight) for layer in (other[0], again[0])] == [5, 5]


def test_to_which_of_its_twins_the_loss_rises_how_far(product):
    _, *orders = permutations(range(5))
    twins = [S.twin(product, S.hidden_orders(product, torch.tensor(order))) for order in orders]
    rises = torch.tensor([S.barrier(product, twin, loss) for twin in twins])
    assert len(rises) == 119 and 20 < rises.max() < 30 and 4 < rises.median() < 6


def test_other_orders_of_the_same_pictures_end_elsewhere_from_one_start(product):
    """ "… initial conditions and optimization trajectory": as good, and other weights in every order of the units."""
    torch.manual_seed(1)
    start = mlp().state_dict()
    one, other = mlp(), mlp()
    for network in (one, other):
        network.load_state_dict(start)
        trained(network, batch=8)
    assert max(loss(one), loss(other)) < 0.2
    closest = S.closest_twin(one, other)
    assert gsa.symmetry.relative_error(flat(closest.parameters()), flat(one.parameters())) > 1e-2


def test_units_that_start_alike_fit_no_more_than_one(product):
    """ "Limiting its expressive power"; dropout tells them apart."""
    torch.manual_seed(0)
    alike, alone = loss(trained(S.constant_start(mlp(), 0.25))), loss(trained(mlp(1)))
    assert alike > 0.9 * alone > 50 * loss(product)
    assert loss(trained(S.constant_start(mlp(dropout=0.2), 0.25))) < 0.8 * alike


@pytest.mark.parametrize("function", [nn.Tanh, nn.Sigmoid])
def test_units_that_can_change_places_waste_no_parameter(function):
    x, network = torch.randn(40, 3), nn.Sequential(nn.Linear(3, 4), function(), nn.Linear(4, 2))
    assert S.parameter_rank(network, x) == {"rank": 26, "parameters": 26}
    assert S.parameter_rank(S.constant_start(network, 0.3), x) == {"rank": 8, "parameters": 26}  # as one unit has
    with torch.no_grad():  # planted: a copy, whose outgoing weights count together with the other's
        network[0].weight[1], network[0].bias[1] = network[0].weight[0], network[0].bias[0]
    assert S.parameter_rank(network, x)["rank"] == 24


def test_rectified_units_waste_one_each():
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    assert S.parameter_rank(network, torch.randn(200, 3)) == {"rank": 22, "parameters": 26}


def test_more_units_than_can_be_tried_are_refused():
    with pytest.raises(ValueError, match="at most 7 hidden units, but has 8"):
        S.closest_twin(mlp(8), mlp(8))
    with pytest.raises(ValueError, match="numbered from 0 to 0, but got 5"):
        S.closest_twin(mlp(), mlp(), layer=5)


def test_a_rank_that_would_tell_nothing_is_refused():
    """Of fewer samples than parameters all would look wasted, and single precision takes its rounding for a rank."""
    network = mlp()
    with pytest.raises(ValueError, match="at least 21 outputs in all, one a parameter, but got 20"):
        S.parameter_rank(network, torch.randn(20, 2))
    with pytest.raises(ValueError, match="told in float64, but got torch.float32"):
        S.parameter_rank(network, torch.randn(40, 2, dtype=torch.float32))


def test_a_loss_that_rises_all_the_way_to_the_other_network_is_no_barrier():
    one, other = (S.constant_start(mlp(), value) for value in (0.0, 1.0))
    assert S.barrier(one, other, lambda network: network[0].weight.sum()) == 0


def test_a_rank_does_not_depend_on_the_units_of_the_inputs():
    network, x = nn.Sequential(nn.Linear(2, 3, bias=False)), torch.randn(4, 2)
    assert S.parameter_rank(network, x)["rank"] == S.parameter_rank(network, 1e-12 * x)["rank"] == 6


def test_a_loss_that_is_no_number_between_two_networks_is_told():
    losses = iter([0.1, float("nan"), 0.2])
    assert math.isnan(S.barrier(mlp(), mlp(), lambda network: torch.tensor(next(losses)), places=3))
