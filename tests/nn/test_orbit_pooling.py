"""Networks of anybody's, shown every picture in all poses."""

import pytest
import torch
import torch._dynamo.testing
from torch import nn

import gsa
from gsa.nn import OrbitPooling
from gsa.symmetry import assert_equivariant, equivariance_error
from tests.conftest import ALL_GROUPS

pytestmark = pytest.mark.usefixtures("float64")


def classifier():
    """Knows every pixel by its place."""
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 49, 5))


def mapper():
    """Strides over even sides: not even its convolutions commute with anything."""
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(4, 3, 2))


@pytest.mark.parametrize("group", ALL_GROUPS)
@pytest.mark.parametrize("kind", ["max", "mean"])
def test_whatever_the_network_it_commutes_with_the_grids_elements(group, kind):
    pictures = torch.rand(3, 2, 7, 7)
    for network in (classifier(), mapper()):
        assert max(equivariance_error(network, pictures, "R4M").values()) > 1e-2
        errors = equivariance_error(OrbitPooling(network, group, kind), pictures, group)
        on_grid = gsa.group(group).grid_elements
        assert max(errors[h] for h in on_grid) < 1e-12
        assert all(errors[h] > 1e-3 for h in errors if h not in on_grid)  # sampled


def test_it_is_the_formula():
    network, x = mapper(), torch.rand(2, 2, 7, 7)
    turned = [torch.rot90(network(torch.rot90(x, k, (2, 3))), -k, (2, 3)) for k in range(4)]
    torch.testing.assert_close(OrbitPooling(network, "R4", "max")(x), torch.stack(turned).amax(0))
    torch.testing.assert_close(OrbitPooling(network, "R4", "mean")(x), sum(turned) / 4)
    network = classifier()
    answers = torch.stack([network(torch.rot90(x, k, (2, 3))) for k in range(4)])
    torch.testing.assert_close(OrbitPooling(network, "R4")(x), answers.amax(0))
    torch.testing.assert_close(OrbitPooling(network, "Z2")(x), network(x))


def test_batch_norms_see_all_poses_in_training():
    network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    x = torch.rand(4, 1, 6, 6)
    assert_equivariant(OrbitPooling(network, "R4").train(), x, gsa.group("R4"), tolerance=1e-12)
    assert_equivariant(OrbitPooling(network, "R4M").eval(), x, gsa.group("R4M"), tolerance=1e-12)


def test_gradients_turn_with_the_pictures():
    pooled = OrbitPooling(classifier(), "R4M")
    x = torch.rand(2, 2, 7, 7, requires_grad=True)
    moved = x.detach().flip(-1).rot90(1, (2, 3)).requires_grad_()
    pooled(x).square().sum().backward()
    pooled(moved).square().sum().backward()
    torch.testing.assert_close(moved.grad, x.grad.flip(-1).rot90(1, (2, 3)))


def test_pictures_that_are_not_square():
    network = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten())
    for group in ("Z2M", "R2", "R2M", "R4", "R4M"):
        for one in (network, mapper()):
            assert_equivariant(OrbitPooling(one, group), torch.rand(2, 2, 6, 9), gsa.group(group), tolerance=1e-12)
    several = Several(lambda x: {"maps": [x], "means": x.mean((2, 3))})
    x = torch.rand(2, 2, 5, 7)
    torch.testing.assert_close(OrbitPooling(several, "R4M")(x), {"maps": [x], "means": x.mean((2, 3))})
    with pytest.raises(ValueError, match=r"square ones in the poses of R8, but got the shape \[2, 2, 5, 7\]"):
        OrbitPooling(network, "R8")(x)
    with pytest.raises(ValueError, match=r"images \[B, C, H, W\], but got the shape \[2, 5, 7\]"):
        OrbitPooling(network, "R2")(torch.rand(2, 5, 7))
    with pytest.raises(ValueError, match="floating"):
        OrbitPooling(network, "R2")(torch.ones(1, 2, 5, 5, dtype=torch.int64))


@pytest.mark.parametrize("network, found", [
    (lambda: nn.Conv1d(7, 2, 1), r"answers \[B, D\] or maps .* of 4 × 3 pictures .* but Several returned \[12, 2, 7\]"),
    (lambda: nn.Sequential(nn.Flatten(0), nn.Unflatten(0, (6, -1))), r"but Several returned \[6, 196\]"),
    (lambda: lambda x: {"out": None}, "but Several returned NoneType"),
])  # fmt: skip
def test_answers_of_another_shape_are_refused(network, found):
    made = network()
    with pytest.raises(ValueError, match=found):
        OrbitPooling(Several(lambda x: made(x[:, 0] if isinstance(made, nn.Conv1d) else x)), "R4")(
            torch.rand(3, 2, 7, 7)
        )


class Several(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


def test_several_answers_are_pooled_one_by_one():
    """As torchvision's segmentation networks return a dictionary of maps, and backbones lists of them."""
    network, other, x = mapper(), mapper(), torch.rand(2, 2, 7, 7)
    several = Several(lambda x: {"out": network(x), "more": [other(x), (x, 2 * x)], "means": x.mean((2, 3))})
    pooled = OrbitPooling(several, "R4", "mean")(x)
    out, inner = OrbitPooling(network, "R4", "mean")(x), OrbitPooling(other, "R4", "mean")(x)
    expected = {"out": out, "more": [inner, [x, 2 * x]], "means": x.mean((2, 3))}
    torch.testing.assert_close(pooled, expected)


def test_choices_are_refused_by_name():
    for wrong, message in (
        ({"kind": "sum"}, "kind"),
        ({"outputs": "logits"}, "a field is one of"),
        ({"group": "C4"}, "a group"),
    ):
        with pytest.raises(ValueError, match=message):
            OrbitPooling(**{"network": classifier(), "group": "R4"} | wrong)
    with pytest.raises(ValueError, match="network must be of the class Module"):
        OrbitPooling(torch.relu, "R4")


def test_it_compiles_and_is_exported():
    pooled, x = OrbitPooling(classifier(), "R4M"), torch.rand(2, 2, 7, 7)
    program = torch.export.export(pooled.eval(), (x,), dynamic_shapes={"images": {0: torch.export.Dim("batch")}})
    torch.testing.assert_close(program.module()(torch.cat((x, x))), pooled(torch.cat((x, x))))
    torch.testing.assert_close(torch.compile(pooled, backend="eager", fullgraph=True)(x), pooled(x))
    assert "R4M, max, outputs='scalar'" in repr(pooled)


def test_what_is_pooled_may_be_changed_in_place():
    """As classifiers do that begin with dropout in place."""
    pooled = nn.Sequential(OrbitPooling(classifier(), "R4"), nn.ReLU(inplace=True))
    plain = nn.Sequential(pooled[0], nn.ReLU())
    x = torch.rand(3, 2, 7, 7, requires_grad=True)
    found, expected = (torch.autograd.grad(net(x).square().sum(), x)[0] for net in (pooled, plain))
    torch.testing.assert_close(found, expected)


def test_any_size_is_exported_in_one_program_and_compiled_in_one_graph():
    side = torch.export.Dim("side", min=4, max=64)
    for group, sides in (("R4M", {2: side, 3: side}), ("R2M", {2: side, 3: torch.export.Dim("wide", min=4, max=64)})):
        pooled = OrbitPooling(nn.Conv2d(1, 2, 3, padding=1), group)
        program = torch.export.export(pooled, (torch.rand(2, 1, 8, 8),), dynamic_shapes={"images": sides})
        x = torch.rand(2, 1, 11, 11)
        torch.testing.assert_close(program.module()(x), pooled(x))
    counter = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(OrbitPooling(nn.Conv2d(1, 2, 3, padding=1), "R4"), backend=counter, dynamic=True)
    for size in (8, 9, 11, 14):
        compiled(torch.rand(2, 1, size, size))
    assert counter.frame_count <= 2


def test_answers_that_are_not_alike_are_refused():
    for network, sides, said in ((nn.Conv2d(1, 1, (3, 1)), (8, 8), r"\[1, 1, 6, 8\] and \[1, 1, 8, 6\]"),
                                 (Several(lambda x: x.mean((1, 2))), (6, 8), r"\[1, 8\] and \[1, 6\]")):  # fmt: skip
        with pytest.raises(ValueError, match=rf"answers are alike in all poses, .* returned, moved back, {said}"):
            OrbitPooling(network, "R4")(torch.rand(1, 1, *sides))
