"""Exported programs are trained like the networks they came from, and choose their backend where they run."""

import warnings
from pathlib import Path

import pytest
import torch
from torch.autograd import forward_ad

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
def test_hessians_are_the_same_in_every_way_to_them():
    network = gsa.nn.GroupSelfAttention("R4", 1, 1, num_heads=1, head_dim=3, neighbourhood=3).double().eval()
    x = torch.rand(1, 1, 4, 2, 2, dtype=torch.float64)

    def energy(z):
        return network(z).square().sum()

    expected = torch.autograd.functional.hessian(energy, x)
    forward_mode = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
    torch.testing.assert_close(torch.autograd.functional.hessian(energy, x, **forward_mode), expected)
    torch.testing.assert_close(torch.func.hessian(energy)(x), expected)


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


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
@pytest.mark.parametrize("trained", [True, False])
def test_forward_mode_takes_derivatives(trained):
    """Of a frozen layer, too, whose op autograd would not be asked about."""
    layer = gsa.nn.LiftingSelfAttention("R4", 1, 4, 2, 4, 3).double().requires_grad_(trained)
    x, direction = torch.rand(2, 2, 1, 6, 6, dtype=torch.float64)
    expected = torch.autograd.functional.jvp(layer, x, direction)[1]
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(layer(forward_ad.make_dual(x, direction))).tangent
    torch.testing.assert_close(found, expected)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script", "ignore:Dynamo does not know")
@pytest.mark.slow
@pytest.mark.parametrize("form", ["lifting", "regular"])
def test_torch_func_is_compiled_with_its_derivatives(form):
    lifting = form == "lifting"
    kind, poses = (gsa.nn.LiftingSelfAttention, ()) if lifting else (gsa.nn.GroupSelfAttention, (4,))
    layer = kind("R4", 1, 2, num_heads=1, head_dim=3, neighbourhood=3).double()
    x = torch.rand(1, 1, *poses, 4, 4, dtype=torch.float64)

    def moved(x):
        return torch.func.jvp(layer, (x,), (x,))[1]

    def graded(x):
        return torch.func.grad(lambda x: layer(x).square().sum())(x)

    assert moved(x).abs().max() > 0.01
    for function in (moved, graded, layer):
        torch.compiler.reset()
        torch.testing.assert_close(torch.compile(function, backend="aot_eager")(x), function(x))
    torch.compiler.reset()
    compiled = torch.compile(layer, backend="aot_eager")
    torch.testing.assert_close(torch.func.jvp(compiled, (x,), (x,))[1], moved(x))


def test_third_derivatives_are_those_of_differences():
    """Of the gradient of a gradient penalty, along a direction."""
    torch.manual_seed(0)
    layer = gsa.nn.GroupSelfAttention("R4", 2, 2, num_heads=2, head_dim=6, neighbourhood=3).double()
    centre, step = torch.rand(1, 2, 4, 5, 5, dtype=torch.float64), 1e-5
    along = torch.randn_like(centre)

    def penalised(x, graph=False):
        (first,) = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x, create_graph=graph)[0]

    x = centre.clone().requires_grad_()
    (found,) = torch.autograd.grad((penalised(x, True) * along).sum(), x)
    ahead, behind = (penalised((centre + s * along).requires_grad_()) for s in (step, -step))
    torch.testing.assert_close(found, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("error")  # as those are that a loop of torch's own would give
@pytest.mark.parametrize("form", ["regular", "summed"])
def test_samples_of_vmap_are_those_one_by_one(form, float64):
    layer = gsa.nn.GroupSelfAttention("R4", 2, 2, 2, 8, 3, form=form)
    x = torch.randn(2, 2, 4, 5, 3, 5, requires_grad=True)  # samples on axis 4
    each = [layer(one) for one in x.unbind(4)]
    torch.testing.assert_close(torch.vmap(layer, in_dims=4)(x), torch.stack(each))
    directions = torch.randn(3, *each[0].shape)
    together = torch.autograd.grad(each[0], x, directions, retain_graph=True, is_grads_batched=True)[0]
    expected = [torch.autograd.grad(each[0], x, one, retain_graph=True)[0] for one in directions]
    torch.testing.assert_close(together, torch.stack(expected))


@pytest.mark.filterwarnings("error")
def test_networks_of_vmap_are_those_one_by_one(float64):
    layer, x = gsa.nn.GroupSelfAttention("R4", 2, 2, 2, 8, 3), torch.randn(2, 2, 4, 5, 5)
    weights = {name: torch.stack([p, p + 0.1]).detach() for name, p in layer.named_parameters()}
    together = torch.vmap(lambda own: torch.func.functional_call(layer, own, x))(weights)
    alone = [torch.func.functional_call(layer, {name: p[i] for name, p in weights.items()}, x) for i in range(2)]
    torch.testing.assert_close(together, torch.stack(alone))


@pytest.mark.filterwarnings("error")
def test_samples_of_vmap_have_dropout_of_their_own(float64):
    layer = gsa.nn.GroupSelfAttention("R4", 2, 2, 2, 8, 3, attention_dropout=0.5)
    x = torch.randn(1, 2, 4, 5, 5).expand(3, -1, -1, -1, -1, -1)
    first, second, _ = torch.vmap(layer, randomness="different")(x)
    assert not torch.allclose(first, second)
    first, second, _ = torch.vmap(layer, randomness="same")(x)
    assert torch.equal(first, second)
