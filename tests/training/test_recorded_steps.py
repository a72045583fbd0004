"""Steps of any optimizer, recorded and replayed; on a tape that does what a CUDA graph does."""

import pytest
import torch
from torch import nn

from gsa.training._recorded_steps import RecordedSteps, structure
from tests.tape import Tape, same


@pytest.fixture(autouse=True)
def tape(monkeypatch):
    monkeypatch.setattr("gsa.training._recorded_steps.CudaGraph", Tape)


def trained(optimizer, batches, steps, between):
    """Weights of a linear map, trained on batches of these sizes; which steps were replayed."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)).double()
    made, at_hand, replayed = optimizer(network), [], []

    def step():
        made.zero_grad()
        network(at_hand[0]).square().mean().backward()
        made.step()

    for number, size in enumerate(batches):
        between(number, network, made)
        inputs = [torch.randn(size, 3, dtype=torch.float64)]
        if steps:
            inputs = steps.place(inputs)
        at_hand[:] = inputs
        replayed.append(steps.take(step, inputs, made) if steps else step())
        assert all(type(group["lr"]) is float for group in made.param_groups)
    return dict(network.named_parameters()), replayed


def steps_of(optimizer, batches, between=lambda step, network, optimizer: None):
    """Which steps were replayed; the weights are those of steps that are not recorded."""
    plain, _ = trained(optimizer, batches, None, between)
    weights, replayed = trained(optimizer, batches, RecordedSteps(), between)
    same(weights, plain)
    return replayed


def adam(network):
    return torch.optim.Adam(network.parameters(), lr=0.01, fused=True)


def test_batches_of_another_size_are_taken_as_they_are():
    replayed = steps_of(adam, [5, 5, 5, 5, 5, 2, 5])
    assert replayed == [False, False, False, True, True, False, True]


def test_what_is_frozen_in_between_is_recorded_anew():
    def freeze(step, network, optimizer):
        network[0].requires_grad_(step < 5)

    replayed = steps_of(adam, [5] * 10, between=freeze)
    assert replayed == [False] * 3 + [True] * 2 + [False] * 3 + [True] * 2


def test_momenta_that_change_with_every_step_are_followed_and_told_of():
    def cycle(step, network, optimizer):
        optimizer.param_groups[0].update(betas=(0.9 - 0.01 * step, 0.999), lr=0.01 / (step + 1))

    with pytest.warns(
        UserWarning, match="steps are not recorded, because options of the optimizer other than its rate"
    ):
        assert steps_of(adam, [5] * 12, between=cycle) == [False] * 12


def test_rates_are_followed():
    def change(step, network, optimizer):
        optimizer.param_groups[0]["lr"] = 0.02 / (step // 2 + 1)

    assert sum(steps_of(adam, [5] * 8, between=change)) == 5


def test_another_optimizer_is_recorded_anew():
    steps = RecordedSteps()
    for _ in range(2):  # the first training has failed, and never ended
        weights, replayed = trained(adam, [5] * 5, steps, lambda *_: None)
        assert replayed == [False] * 3 + [True] * 2
    same(weights, trained(adam, [5] * 5, None, lambda *_: None)[0])


def test_inputs_are_copied_where_a_data_set_lies_on_the_device():
    data = torch.arange(12.0).view(4, 3)
    steps, before = RecordedSteps(), data.clone()
    optimizer = adam(nn.Linear(3, 1).double())
    for batch in data.split(1) * 2:
        inputs = steps.place([batch])
        assert torch.equal(inputs[0], batch) and inputs[0].data_ptr() != batch.data_ptr()
        steps.take(lambda: None, inputs, optimizer)
    assert torch.equal(data, before)


def test_what_changes_in_a_network_between_epochs_is_recorded_anew():
    network = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1), nn.BatchNorm1d(2))
    before = structure(network)
    assert structure(network) == before
    network[2].running_mean.add_(1)
    assert structure(network) == before  # numbers are read where they lie
    for change in (
        lambda: setattr(network[1], "p", 0.2),
        network[2].eval,
        lambda: setattr(network[2], "running_mean", torch.ones(2)),
        lambda: setattr(network[0], "weight", nn.Parameter(torch.ones(2, 2))),
    ):
        change()
        assert structure(network) != before
        before = structure(network)


def test_an_error_in_a_recording_says_what_it_was_about():
    optimizer = adam(network := nn.Linear(3, 1).double())

    def step():
        optimizer.zero_grad()
        loss = network(torch.ones(2, 3, dtype=torch.float64)).sum()
        loss.backward()
        optimizer.step()
        loss.item()

    steps = RecordedSteps()
    for _ in range(3):
        steps.take(step, [], optimizer)
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing") as error:
        steps.take(step, [], optimizer)
    assert "it may neither ask for numbers of the GPU nor copy any to it" in error.value.__notes__[0]
    assert type(optimizer.param_groups[0]["lr"]) is float and not steps.is_recording
