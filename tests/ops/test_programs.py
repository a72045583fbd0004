"""Exported programs are trained like the networks they came from, and choose their backend where they run."""

import warnings
from pathlib import Path

import pytest
import torch

import gsa
from gsa import ops
from gsa.ops import _registry

OLD = Path(__file__).parents[1] / "golden" / "frozen" / "export"


def exported(network, example):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        return torch.export.export(network, (example,), dynamic_shapes=({0: torch.export.Dim("batch")},))


def gradients(network, images):
    output = network(images)
    torch.manual_seed(0)
    (output * torch.randn_like(output)).sum().backward()
    return output, {name: parameter.grad for name, parameter in network.named_parameters()}


def compare(program, network, images):
    """Both outputs, and the gradients of all parameters."""
    expected, right = gradients(network, images)
    actual, found = gradients(program, images)
    torch.testing.assert_close(actual, expected)
    assert right.keys() == found.keys() and all(gradient is not None for gradient in right.values())
    for name in right:
        torch.testing.assert_close(found[name], right[name])


def test_a_program_of_before_is_trained():
    images = torch.rand(3, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    compare(torch.export.load(OLD / "model.pt2").module(), gsa.load(OLD), images)


@pytest.mark.parametrize("form", ["regular", "summed"])
def test_a_program_is_trained(tmp_path, form):
    network = torch.nn.Sequential(
        gsa.nn.LiftingSelfAttention("R4", 1, 4, num_heads=2, head_dim=4, neighbourhood=3),
        gsa.nn.GroupSelfAttention("R4", 4, 4, num_heads=2, head_dim=4, neighbourhood=3, form=form),
    )
    torch.export.save(exported(network, torch.rand(2, 1, 6, 6)), tmp_path / "program.pt2")
    program = torch.export.load(tmp_path / "program.pt2").module()
    compare(program, network, torch.rand(3, 1, 6, 6))


def test_a_program_chooses_where_it_runs_and_says_so(monkeypatch, caplog):
    monkeypatch.setattr(_registry, "_announced", set())
    layer = gsa.nn.LiftingSelfAttention("R4", 1, 4, num_heads=1, head_dim=4, neighbourhood=3)
    program = exported(layer, torch.rand(2, 1, 6, 6)).module()
    served = []
    reference = _registry._BACKENDS["reference"]

    def spied(direction):
        def run(*arguments):
            served.append(direction)
            return getattr(reference, direction)(*arguments)

        return run

    spy = _registry.Backend(spied("forward"), spied("backward"), reference.refusal, "")
    monkeypatch.setitem(_registry._BACKENDS, "reference", spy)
    with caplog.at_level("INFO", logger="gsa.ops"), ops.use("reference"):
        program(torch.rand(2, 1, 6, 6)).sum().backward()
    assert served == ["forward", "backward"]
    assert [record.message for record in caplog.records if record.name == "gsa.ops"] == [
        "attention runs on the 'reference' backend: gsa.ops.use(...) is in force"
    ]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_torch_func_takes_derivatives():
    network = gsa.create_model("digits_r4_sa").double().eval()
    x, direction = torch.rand(2, 2, 1, 12, 12, dtype=torch.float64)
    expected = torch.autograd.functional.jvp(network, x, direction)[1]
    torch.testing.assert_close(torch.func.jvp(network, (x,), (direction,))[1], expected)
    weights = dict(network.named_parameters())

    def loss(weights, picture):
        return torch.func.functional_call(network, weights, (picture[None],)).square().sum()

    of_each = torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, x)
    of_second = torch.autograd.grad(loss(weights, x[1]), list(weights.values()))
    for found, wanted in zip(of_each.values(), of_second, strict=True):
        torch.testing.assert_close(found[1], wanted)
    layer = gsa.nn.LiftingSelfAttention("R4", 1, 4, 2, 4, 3, attention_dropout=0.5).train()
    with pytest.raises(ValueError, match="without dropout only, but got 0.5"):
        torch.func.jvp(layer, (x.float(),), (direction.float(),))
