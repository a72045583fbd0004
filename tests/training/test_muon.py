"""Matrices by Muon, the rest by AdamW, positions without decay."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import gsa
from gsa.training import Muon, muon, parameter_groups, sort_parameters
from gsa.training._muon import leaves_steps_out, orthogonal


def test_parameters_are_told_apart():
    network = gsa.create_model("rotmnist_gsa")
    kinds = sort_parameters(network)
    names = {parameter: name for name, parameter in network.named_parameters()}
    assert sorted(p for kind in kinds.values() for p in map(names.get, kind)) == sorted(names.values())
    assert {names[p].rsplit(".", 1)[1] for p in kinds["positions"]} == {"offset", "raw_sharpness", "preference"}
    assert {names[p].split(".")[-2] for p in kinds["matrices"]} == {"query_key_value", "positional_value", "out"}
    assert "head.weight" in {names[p] for p in kinds["rest"]}


def test_filters_are_matrices_and_encodings_are_not():
    cnn = gsa.create_model("rotmnist_r4_cnn")
    assert len(sort_parameters(cnn)["matrices"]) == 5  # not of one channel, nor to the classes
    attention = gsa.create_model("rotmnist_r4_sa")
    names = {parameter: name for name, parameter in attention.named_parameters()}
    assert not any("encoding" in names[p] for p in sort_parameters(attention)["matrices"])


def test_depthwise_filters_and_heads_of_other_names_are_no_matrices():
    network = nn.Module()
    network.depthwise, network.fc = nn.Conv2d(8, 8, 3, groups=8), nn.Linear(8, 5)
    network.positions = gsa.nn.PosedAttention("R4", 8, 8)
    kinds = sort_parameters(network)
    assert [p.shape for p in kinds["matrices"]] == [network.positions.weight.shape]
    assert len(kinds["positions"]) == 2


def test_shared_parameters_come_once_and_frozen_ones_as_well():
    linear = nn.Linear(3, 3)
    network = nn.Sequential(linear, linear, nn.Linear(3, 2).requires_grad_(False), nn.Embedding(4, 3))
    assert [len(kind) for kind in sort_parameters(network).values()] == [2, 0, 3]


def test_steps_of_matrices_are_orthogonal():
    for shape in ((3, 20, 144), (1, 144, 20), (2, 12, 12)):
        values = torch.linalg.svdvals(orthogonal(torch.randn(shape)))
        assert values.min() > 0.5 and values.max() < 1.3


def test_matrices_of_one_shape_keep_to_themselves():
    """A step is that of every matrix alone: tall ones lie flat beside others, filters may be laid out in any way."""
    torch.manual_seed(0)
    layers = [nn.Linear(6, 4), nn.Linear(4, 6), nn.Conv2d(2, 4, 3).to(memory_format=torch.channels_last)]
    layers.append(nn.Conv2d(2, 4, 3))
    before = [layer.weight.detach().clone() for layer in layers]
    for layer in layers:
        layer.weight.grad = torch.randn_like(layer.weight)
        layer.bias.grad = torch.randn_like(layer.bias)
    muon(nn.ModuleList(layers), lr=0.5, matrix_lr=1.0, weight_decay=0.0).step()
    for layer, start in zip(layers, before, strict=True):
        grad = layer.weight.grad.reshape(len(start), -1)
        tall = grad.shape[0] > grad.shape[1]
        step = orthogonal((grad.T if tall else grad)[None] * 1.95)[0]
        scale = max(1, grad.shape[0] / grad.shape[1]) ** 0.5
        expected = start - 0.5 * scale * (step.T if tall else step).reshape(start.shape)
        torch.testing.assert_close(layer.weight.detach(), expected)


def test_the_rest_takes_the_steps_of_adamw():
    torch.manual_seed(0)
    start, x = nn.Linear(1, 1).state_dict(), torch.randn(20, 8, 1)
    ends = []
    for make in (
        lambda network: muon(network, lr=0.1, weight_decay=0.3),
        lambda network: torch.optim.AdamW(network.parameters(), lr=0.1, weight_decay=0.3),
    ):
        network = nn.Linear(1, 1)
        network.load_state_dict(start)
        optimizer = make(network)
        for batch in x:
            optimizer.zero_grad()
            (network(batch) - 1).square().mean().backward()
            optimizer.step()
        ends.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
    torch.testing.assert_close(*ends)


def test_positions_do_not_decay():
    for make in (
        lambda network: muon(network, lr=0.1, weight_decay=0.5),
        lambda network: torch.optim.AdamW(parameter_groups(network), lr=0.1, weight_decay=0.5),
    ):
        network = gsa.create_model("rotmnist_positional")
        offset = next(m for m in network.modules() if isinstance(m, gsa.encodings.QuadraticEncoding)).offset
        before, head = offset.clone(), network.head.weight.clone()
        for parameter in network.parameters():
            parameter.grad = torch.zeros_like(parameter)
        make(network).step()
        assert torch.equal(offset, before)
        torch.testing.assert_close(network.head.weight.detach(), head.detach() * 0.95)


def test_frozen_positions_do_not_decay_when_they_are_thawed():
    network = gsa.create_model("rotmnist_positional")
    encoding = network.lifting.encoding.requires_grad_(False)
    for optimizer in (torch.optim.AdamW(parameter_groups(network), weight_decay=0.5), muon(network, weight_decay=0.5)):
        (group,) = (g for g in optimizer.param_groups if any(p is encoding.offset for p in g["params"]))
        assert group["weight_decay"] == 0


def test_a_network_without_positions_is_optimised_as_before():
    network = gsa.create_model("digits_r4_sa")
    assert all(isinstance(p, nn.Parameter) for p in parameter_groups(network))


def test_states_are_saved_and_restored():
    torch.manual_seed(0)
    x = torch.randn(4, 1, 28, 28)

    def trained(network, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            network(x).logsumexp(1).mean().backward()
            optimizer.step()
        return torch.cat([p.detach().flatten() for p in network.parameters()])

    network = gsa.create_model("rotmnist_positional", channels=4, dropout=0.0)
    optimizer = muon(network)
    trained(network, optimizer, 2)
    other = gsa.create_model("rotmnist_positional", channels=4, dropout=0.0)
    other.load_state_dict(network.state_dict())
    resumed = muon(other)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert torch.equal(trained(network, optimizer, 2), trained(other, resumed, 2))


@pytest.mark.parametrize("make", [
    lambda network: muon(network, lr=0.1, weight_decay=0.3),
    lambda network: torch.optim.AdamW(network.parameters(), lr=0.1, weight_decay=0.3, fused=True),
    lambda network: torch.optim.SGD(network.parameters(), lr=0.1, weight_decay=0.3, fused=True),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_are_left_out_as_if_they_had_not_been(make, dtype):
    """The first and later ones, where they are not finite; all others are those of an optimizer that is not told."""
    torch.manual_seed(0)
    told = nn.Sequential(nn.Linear(3, 4), nn.Conv2d(1, 2, 3)).to(dtype)
    plain = copy.deepcopy(told)
    one, other = make(told), make(plain)
    assert leaves_steps_out(one) and not leaves_steps_out(torch.optim.AdamW(told.parameters()))
    for bad in (True, False, False, True, True, False):
        grads = [torch.randn_like(p) for p in told.parameters()]
        for p, grad in zip(told.parameters(), grads, strict=True):
            p.grad = grad / 0 if bad else grad
        one.grad_scale, one.found_inf = None, torch.tensor(float(bad))
        one.step()
        if not bad:
            for p, grad in zip(plain.parameters(), grads, strict=True):
                p.grad = grad
            other.step()
        assert all(map(torch.equal, told.parameters(), plain.parameters()))
    before = [p.detach().clone() for p in told.parameters()]
    one.found_inf = torch.tensor(0.0)  # the planted failure: it is not told
    for p in told.parameters():
        p.grad = p / 0
    one.step()
    assert not any(map(torch.equal, told.parameters(), before))


def test_what_begins_with_the_first_step_cannot_leave_it_out():
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9, fused=True)
    assert not leaves_steps_out(optimizer)
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert leaves_steps_out(optimizer)
    optimizer.load_state_dict(torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9).state_dict())
    assert not leaves_steps_out(optimizer)  # it is fused no longer


def test_nothing_is_left_out_on_mps():
    """Whose kernels pass over it before torch 2.13; elsewhere Muon leaves steps out."""
    optimizer = muon(nn.Linear(2, 2))
    assert leaves_steps_out(optimizer)
    optimizer.param_groups[0]["params"] = [SimpleNamespace(device=torch.device("mps"))]
    assert not leaves_steps_out(optimizer)


@pytest.mark.parametrize(
    "wrong", [{"lr": -1.0}, {"weight_decay": float("nan")}, {"matrix_lr": -2.0}, {"momentum": 1.0}]
)
def test_impossible_numbers_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        muon(nn.Linear(2, 2), **wrong)
    if "matrix_lr" not in wrong:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Muon([{"params": [torch.ones(2, 2)], "momentum": 0.9} | wrong])


def test_what_is_no_matrix_and_kinds_that_nobody_knows_are_refused():
    with pytest.raises(ValueError, match=r"of matrices or filters, but has one of \[\]"):
        Muon([{"params": [torch.tensor(1.0)], "momentum": 0.9}])
    for untold in (nn.Linear(2, 2).parameters(), [{"params": [torch.ones(2, 2)]}]):  # which AdamW would take all of
        with pytest.raises(ValueError, match=r"none has: gsa.training.muon\(network\) tells parameters apart"):
            Muon(untold)
    muon(nn.LayerNorm(2))  # has no matrices
    odd = nn.Linear(2, 2)
    odd.parameter_kind = "position"
    with pytest.raises(ValueError, match="parameter_kind must be one of .* but Linear has 'position'"):
        sort_parameters(odd)


def test_steps_of_matrices_are_those_of_the_formula():
    """M ← μM + G,   W ← (1 − ηλ) W − η √max(1, rows/columns) orthogonal(G + μM), one step after another."""
    layer = nn.Linear(3, 4, bias=False)
    optimizer = muon(nn.ModuleList([layer]), lr=0.1, matrix_lr=2.0, weight_decay=0.3, momentum=0.8)
    weight, velocity = layer.weight.detach().clone(), torch.zeros(4, 3)
    for grad in torch.randn(3, 4, 3):
        layer.weight.grad = grad
        optimizer.step()
        velocity = 0.8 * velocity + grad
        step = orthogonal((grad + 0.8 * velocity).T[None])[0].T
        weight = (1 - 0.2 * 0.3) * weight - 0.2 * (4 / 3) ** 0.5 * step
    torch.testing.assert_close(layer.weight.detach(), weight)


def test_a_closure_has_gradients():
    layer = nn.Linear(2, 2)
    optimizer, before = muon(layer), layer.weight.detach().clone()

    def closure():
        loss = layer(torch.ones(1, 2)).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure) is not None and not torch.equal(layer.weight, before)
