"""Networks train on every device as with the reference in float64 on the CPU: as they are, compiled, as CUDA graphs."""

import _training_step
import pytest
import torch
import torch.nn.functional as F

import gsa
from tests.devices import DEVICES, on_gpu

# Names with sides of pictures.
NETWORKS = {"rotmnist_gsa": 28, "digits_r4_sa": 16, "rotmnist_r4_cnn": 28}
BUDGETS = {torch.float64: 1e-9, torch.float32: 1e-3}


@pytest.fixture(autouse=True)
def whole_products(monkeypatch):
    """On a GPU, convolutions would else round factors of float32 to ten bits."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def one_step(name, device, dtype, backend="auto", change=lambda network: None):
    """The loss of a training step, the gradients, and how far they move the weights, by their names."""
    torch.manual_seed(0)
    network = gsa.create_model(name, dropout=0.0)
    with torch.no_grad():
        for p in network.parameters():
            p += 0.02 * torch.randn_like(p)  # some start at zero, and would hide what lies behind them
        change(network)
    network.to(device, dtype)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    images = torch.rand(4, 1, NETWORKS[name], NETWORKS[name], dtype=torch.float64).to(device, dtype)
    labels = torch.tensor([1, 7, 3, 3], device=device)
    with gsa.ops.use(backend):
        loss = F.cross_entropy(network(images), labels)
        loss.backward()
    optimizer.step()
    found = {"loss": loss.detach()}
    for name, p in network.named_parameters():
        found |= {f"gradient of {name}": p.grad, f"step of {name}": p.detach() - before[name]}
    return {key: value.double().cpu() for key, value in found.items() if value.numel()}


def errors(actual, expected):
    """Relative to the largest number of each tensor; of those that are small or zero by symmetry, to the largest."""
    assert actual.keys() == expected.keys()
    sizes = {key: value.abs().max() for key, value in expected.items()}
    largest = max(sizes.values())
    return {
        key: ((actual[key] - b).abs().max() / (sizes[key] if sizes[key] > 1e-3 * largest else largest)).item()
        for key, b in expected.items()
    }


@pytest.mark.parametrize("dtype", BUDGETS, ids=str)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("device", DEVICES)
def test_a_training_step_is_that_of_the_reference(device, name, dtype):
    found = errors(one_step(name, device, dtype), one_step(name, "cpu", torch.float64, "reference"))
    assert len(found) > 20 and not {key: error for key, error in found.items() if not error < BUDGETS[dtype]}


def beyond_budget(name, **options):
    """Which numbers of a step in float32 are wrong."""
    found = errors(one_step(name, "cpu", torch.float32, **options), one_step(name, "cpu", torch.float64, "reference"))
    return {key for key, error in found.items() if error > BUDGETS[torch.float32]}


@pytest.mark.parametrize("name", NETWORKS)
def test_planted_a_weight_that_is_another(name):
    def change(network):
        next(network.parameters()).view(-1)[0] += 0.05

    assert len(beyond_budget(name, change=change)) > 5 and not beyond_budget(name)


@pytest.mark.parametrize("name", ["rotmnist_gsa", "digits_r4_sa"])
def test_planted_a_gradient_that_is_scaled(spoil, name):
    spoil("tiled", backward=lambda gradients: (gradients[0], gradients[1] * 1.1, *gradients[2:]))
    assert beyond_budget(name, backend="tiled")


def trained(device, how=None, stale=False):
    """The losses of some steps on pictures that change, and the weights after them; `how` it is compiled."""
    torch.manual_seed(0)
    network = gsa.create_model("digits_r4_sa").to(device)
    if how:
        torch.compiler.reset()
        network.compile(**how)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    losses = []
    for images in torch.rand(5, 4, 1, 16, 16).to(device):
        if how:
            torch.compiler.cudagraph_mark_step_begin()
        images = losses[0][1] if stale and losses else images
        optimizer.zero_grad()
        loss = F.cross_entropy(network(images), torch.arange(4, device=device))
        loss.backward()
        optimizer.step()
        losses.append((loss.item(), images))
    return torch.tensor([loss for loss, _ in losses]), [p.detach().cpu() for p in network.parameters()]


@pytest.mark.parametrize("device, how", [
    ("cpu", {"backend": "eager"}),
    on_gpu("cuda", {"mode": "default"}),
    on_gpu("cuda", {"mode": "reduce-overhead"}),
])  # fmt: skip
def test_compiled_steps_are_those_of_the_network_as_it_is(float64, device, how):
    torch.testing.assert_close(trained(device, how), trained(device), rtol=0, atol=1e-6)
    torch.compiler.reset()


def test_planted_a_graph_that_sees_the_first_pictures_again(float64):
    losses, _ = trained("cpu")
    stale, _ = trained("cpu", stale=True)
    assert losses[0] == stale[0] and (losses - stale)[1:].abs().min() > 1e-4


def after(steps, device, mode, monkeypatch):
    """The weights after steps of the benchmark; a graph has made three by itself before it is recorded."""
    networks = []
    monkeypatch.setitem(_training_step.NETWORKS, "tested", ("digits_r4_sa", {}, 16, 1))
    step = _training_step.make_step("tested", 4, mode, device, lambda network: networks.append(network) or network)
    for _ in range(steps if mode == "one graph" else steps + 3):
        step()
    return [p.detach().cpu() for p in networks[0].parameters()]


@pytest.mark.parametrize("device, mode", [("cpu", "eager"), on_gpu("cuda", "one graph")])
def test_steps_of_one_graph_are_those_of_the_network_as_it_is(float64, monkeypatch, device, mode):
    """The planted failure is a graph that is replayed once too often."""
    eager = after(4, device, "eager", monkeypatch)
    torch.testing.assert_close(after(4, device, mode, monkeypatch), eager, rtol=0, atol=1e-7)
    one_more = after(5, device, mode, monkeypatch)
    assert max((a - b).abs().max() for a, b in zip(one_more, eager, strict=True)) > 1e-4
