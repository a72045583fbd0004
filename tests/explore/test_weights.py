"""The tab of the weights: what it shows is true, and its judges notice planted failures."""

import pytest
import torch

from gsa.explore import _biases, _reordered, _starts, weights
from gsa.symmetry import statements as S
from tests.explore.unpacking import unpacked

EXACT = 1e-12


@pytest.fixture(scope="module")
def data():
    return weights(steps=5, orders=1)


def is_same_network(order):
    """Forward and in training, by every figure that is shown."""
    figures = [order["errors"]["with the key"]]
    for told in order["training"].values():
        figures += [told["difference"], told["weights"]]
    return max(figures) < EXACT


def test_a_network_in_another_order_is_the_same_and_one_across_heads_is_not(data):
    found = data["reordered"]
    kept, across = found["orders"]
    assert is_same_network(kept) and not is_same_network(across)
    for name, packed in found["losses"].items():
        own, permuted, wrong = map(
            unpacked, (packed, *(kept["training"][name][part] for part in ("permuted", "wrong")))
        )
        assert ((permuted - own) / own).abs().max() < EXACT < 0.1 < ((wrong - own) / own).abs().max()
        assert own[-1] < own[0], "it learns"
    assert min(kept["errors"]["plain data"], kept["errors"]["plain network"]) > 0.1


def test_every_entry_is_found_again_where_it_is_said_to_stand(data):
    for order in data["reordered"]["orders"]:
        for name, packed in data["reordered"]["values"].items():
            before, after = unpacked(packed), unpacked(order["values"][name])
            assert torch.equal(before.flatten()[order["places"][name]], after.flatten()), name
            assert not torch.equal(before, after) and sorted(order["places"][name]) == list(range(before.numel()))
        query = unpacked(data["reordered"]["values"]["query"])[order["order"]][:, order["order"]]
        assert torch.equal(query, unpacked(order["values"]["query"])), "PᵀWP to the letter"


def test_planted_an_order_that_forgets_a_matrix(monkeypatch):
    def forgetful(*arguments):
        return {name: axes for name, axes in S.feature_orders(*arguments).items() if name != "linear1.weight"}

    monkeypatch.setattr(_reordered, "feature_orders", forgetful)
    told = _reordered.reordered(steps=1, orders=1)["orders"][0]["training"]["Adam"]
    assert min(told["difference"], told["weights"]) > 1e-3


def test_units_that_start_equal_are_one_unless_dropout_tells_them_apart(data, monkeypatch):
    found = data["starts"]
    assert found["starts"] == ["constant", "random", "constant, with dropout"]
    for constant, random, dropout in found["different"]:
        assert set(constant) == {1} and set(random) == {8} and dropout[0] == 1 and dropout[-1] == 8
    loss = unpacked(found["loss"])
    assert (loss[:, :, -1] < loss[:, :, 0]).all() and len(found["steps"]) == loss.shape[2]
    monkeypatch.setattr(_starts, "constant_start", lambda mlp, value: mlp)  # planted
    assert set(_starts.starts(steps=4)["different"][0][0]) == {8}
    assert _starts.different_units(torch.tensor([[1.0, 2], [1, 2], [2, 1], [1, 2]])) == 2
    assert _starts.different_units(torch.tensor([[1.0, 2], [1, 2.001], [1, 2 + 1e-7]])) == 2


def does(case):
    """What a bias does, judged by its figures and by the outputs that are shown."""
    errors, outputs = case["errors"][1:], unpacked(case["outputs"]).double()
    moves = (outputs[1:] - outputs[0]).flatten(1).norm(dim=1) / outputs[0].norm() > 1e-2
    if min(errors) > 1e-2:
        return "matters" if moves.all() else "?"
    return ("passes" if moves.all() else "?" if moves.any() else "void") if max(errors) < EXACT else "?"


def test_biases_do_what_is_said_of_them(data, monkeypatch):
    cases = data["biases"]["cases"]
    assert data["biases"]["sizes"][0] == 0 and all(case["errors"][0] == 0 for case in cases)
    assert [does(case) for case in cases] == [case["does"] for case in cases]
    monkeypatch.setattr(_biases, "bias_before_norm", lambda norm, *given: S.bias_before_norm(norm.eval(), *given))
    planted = {case["name"]: does(case) for case in _biases.biases()["cases"]}
    assert planted["Linear bias before BatchNorm, in training"] != "void", "means that stand still"


@pytest.mark.parametrize("steps, orders", [(0, 1), (1, 0)])
def test_nothing_to_show_is_refused(steps, orders):
    with pytest.raises(ValueError, match="at least 1 step and 1 order"):
        weights(steps, orders)
