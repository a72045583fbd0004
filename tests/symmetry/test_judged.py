"""What is not judged: what says the same of everything, what is no tensor, what cannot be moved."""

import numpy
import pytest
import torch
from torch import nn

import gsa
from gsa.symmetry import (
    assert_equivariant,
    equivariance_error,
    permutation_error,
    translation_error,
)
from tests.symmetry.test_symmetry import R4


@pytest.mark.parametrize("shape", [(2,), (1, 2, 3), (2, 3, 4), (2, 3, 5, 6, 6), (1, 2, 3, 4, 5, 6)])
def test_other_outputs_are_refused(shape):
    with pytest.raises(ValueError, match=r"must return what R4 can move: \[B\] or \[B, K\], an image"):
        equivariance_error(lambda x: torch.rand(shape), torch.rand(1, 1, 4, 4), R4)


def test_margins_and_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="a margin of 4 leaves nothing of a 8×9 map"):
        translation_error(torch.relu, torch.rand(1, 1, 8, 9), (1, 1), margin=4)
    with pytest.raises(ValueError, match="must keep the 8×8 pixels"):
        translation_error(nn.MaxPool2d(2), torch.rand(1, 1, 8, 8), (1, 1), margin=1)


def test_outputs_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"expected the shape \[1, 1, 6, 4\], but got \[1, 1, 4, 6\]"):
        equivariance_error(lambda x: torch.zeros(1, 1, 4, 6), torch.rand(1, 1, 4, 6), R4)
    with pytest.raises(ValueError, match="floating dtype"):
        assert_equivariant(lambda x: x, torch.zeros(1, 1, 4, 4, dtype=torch.long), R4)


class Silent(nn.Module):
    """The same for any pictures, as of a head whose weights are zero; or of no pictures at all."""

    def forward(self, x):
        return torch.full((len(x), 3), 2.0, dtype=x.dtype)


@pytest.mark.parametrize("measure", [
    lambda module, x: equivariance_error(module, x, "R4"),
    lambda module, x: assert_equivariant(module, x, "R4"),
    lambda module, x: translation_error(module, x, 1, 1),
    lambda module, x: permutation_error(module, x, torch.arange(36).flip(0)),
    lambda module, x: gsa.symmetry.layer_errors(module, x, "R4"),
    lambda module, x: gsa.symmetry.gradient_errors(module, x, "R4"),
])  # fmt: skip
def test_what_says_the_same_of_everything_is_not_judged(measure):
    for count in (2, 0):
        with pytest.raises(ValueError, match="Silent returns the same whatever it is given, .* of a symmetry"):
            measure(Silent(), torch.rand(count, 1, 6, 6))
    transformer = gsa.create_model("rotmnist_vit").double()  # torchvision's, whose last weights start at zero
    with pytest.raises(ValueError, match="last weights still zero"):
        assert_equivariant(transformer, torch.rand(1, 1, 28, 28).double(), "R4")


@pytest.mark.parametrize("measure", [
    lambda module, x: equivariance_error(module, x, "R4"),
    lambda module, x: assert_equivariant(module, x, "R4"),
    lambda module, x: gsa.symmetry.layer_errors(module, x, "R4"),
])  # fmt: skip
def test_what_says_nearly_the_same_of_everything_is_not_judged(measure):
    """A convolution that breaks the symmetry, before a bias ten million times as large as what depends on it."""
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(64, 3))
    nn.init.constant_(network[-1].bias, 300)
    with torch.no_grad():
        network[-1].weight *= 1e-5
    with pytest.raises(ValueError, match="Sequential returns nearly the same whatever it is given"):
        measure(network.double(), torch.rand(2, 1, 6, 6).double())
    nn.init.zeros_(network[-1].bias)
    errors = equivariance_error(network, torch.rand(2, 1, 6, 6).double(), "R4")
    assert errors[1] > 0.1


@pytest.mark.parametrize("output", [(torch.rand(2, 3),), {"out": "a"}, [], None])
def test_outputs_that_are_no_tensors_are_refused(output):
    x = torch.rand(2, 1, 8, 8)
    for measure in (
        lambda f: equivariance_error(f, x, R4),
        lambda f: translation_error(f, x, 1, 2),
        lambda f: permutation_error(f, x, torch.randperm(64)),
    ):
        with pytest.raises(ValueError, match=f"must return a tensor, .* but returns {type(output).__name__}"):
            measure(lambda x: output)


def test_of_lists_and_dictionaries_every_tensor_is_judged():
    """Planted: one of several that breaks the symmetry, that says nothing, that is there for one input alone."""
    backbone = gsa.create_model("digits_gsa", features_only=True, out_indices=(0, 2)).double()
    x = torch.rand(2, 1, 12, 12).double()
    assert max(assert_equivariant(backbone, x, R4).exact.values()) <= 1e-10
    upright = nn.Conv2d(1, 1, 3).double()
    assert equivariance_error(lambda x: {"in": x, "of": [upright(x)]}, x, R4) == equivariance_error(upright, x, R4)
    with pytest.raises(ValueError, match="output 1, returns the same whatever it is given"):
        equivariance_error(lambda x: [x, torch.ones_like(x)], x, R4)
    with pytest.raises(ValueError, match=r"it returns the shape \[2, 1, 12, 6\]"):
        equivariance_error(lambda x: [x, x[..., :6]], x, R4)
    with pytest.raises(ValueError, match="as many tensors for every input, but returned 1, and 2 for"):
        equivariance_error(lambda given: [given] * (1 + (not torch.equal(given, x))), x, R4)
    with pytest.raises(ValueError, match="must return one tensor, but returns 2 of them"):
        translation_error(lambda x: [x, x], x, 1, 2)


def test_what_moves_nothing_and_what_only_the_identity_is_exact_of_is_refused():
    x = torch.rand(1, 1, 9, 9)
    for shift in (0, 9, (9, -18)):
        with pytest.raises(ValueError, match="moves nothing of a 9×9 picture"):
            translation_error(lambda x: x * torch.arange(9.0), x, shift, 2)
    with pytest.raises(ValueError, match="moves nothing of a 9×9 picture"):
        gsa.symmetry.layer_errors(nn.Flatten(), x, gsa.symmetry.Shifts((9, 0)))
    for order, message in ((torch.zeros(81).long(), "each of 0 to n − 1 once"), (torch.arange(5), "an order of 81")):
        with pytest.raises(ValueError, match=message):
            permutation_error(lambda x: x, x, order)
    for name in ("Z2", "R3"):
        with pytest.raises(ValueError, match=f"of {name} only the identity is exact"):
            assert_equivariant(nn.Flatten(), x, name)


def test_whole_numbers_are_turned_on_the_grid_and_refused_between_its_pixels():
    labels = torch.arange(16).view(1, 1, 4, 4)
    assert gsa.group("R8").act(labels, 2).dtype == torch.int64
    with pytest.raises(ValueError, match="must be of a floating dtype, but got torch.int64"):
        gsa.group("R8").act(labels, 1)
    x = torch.complex(torch.rand(1, 1, 8, 8), torch.rand(1, 1, 8, 8))
    turned = gsa.group("R8").act(x, 1)
    assert torch.equal(turned.imag, gsa.group("R8").act(x.imag, 1))


@pytest.mark.parametrize("takes", [
    lambda x: gsa.create_model("digits_gsa")(x),
    lambda x: gsa.nn.LiftingSelfAttention("R4", 1, 4)(x),
    lambda x: gsa.models.PictureFormat("mine", 1, 8, 2, (0.5,), (0.5,), ("a", "b")).normalise(x),
    lambda x: equivariance_error(torch.sin, x, "R4"),
])  # fmt: skip
def test_arrays_of_other_libraries_are_refused_with_what_makes_a_tensor(takes):
    with pytest.raises(ValueError, match="needs .*a torch.Tensor, but got ndarray: torch.from_numpy makes one"):
        takes(numpy.zeros((1, 1, 8, 8)))


def test_layers_are_judged_as_an_action_of_ones_own_says():
    class WithLengths(gsa.symmetry.GroupAction):
        def moved(self, output, element, shape):
            if output.shape[1:] != (3,):
                return super().moved(output, element, shape)
            turned = output[:, :2] @ self.group.matrices[element].to(output).mT
            return torch.cat((turned, output[:, 2:]), 1)

    class Lengths(nn.Module):
        def forward(self, field):
            mean = field.mean((-1, -2))
            return torch.cat((mean, mean.norm(dim=1, keepdim=True)), 1)

    network = nn.Sequential(gsa.nn.FieldsToPoses("R4"), gsa.nn.PosesToFields("R4"), Lengths(), nn.Identity())
    action = WithLengths("R4", inputs="vector", outputs="vector")
    report = gsa.symmetry.LayerReport.of(network.double(), torch.rand(2, 2, 6, 6).double(), action)
    assert report.first_broken is None and not report.broken


def test_vectors_may_have_their_channels_last():
    field = nn.Sequential(gsa.nn.LiftingConvolution("R4", 1, 2, 3), gsa.nn.PosesToFields("R4")).double()
    action = gsa.symmetry.GroupAction("R4", outputs="vector")
    assert_equivariant(lambda x: field(x).movedim(1, -1), torch.rand(2, 1, 10, 10).double(), action)


@pytest.mark.parametrize("width", [3, 4])
def test_tokens_as_wide_as_there_are_poses_are_tokens(width):
    """Planted: tokens that know their place."""
    embedding = nn.Conv2d(1, width, 2, stride=2).double()
    nn.init.constant_(embedding.weight, 0.3)
    place = torch.rand(16, width).double()
    assert_equivariant(lambda x: embedding(x).flatten(2).mT, torch.rand(2, 1, 8, 8).double(), "R4")
    with pytest.raises(AssertionError):
        assert_equivariant(lambda x: embedding(x).flatten(2).mT + place, torch.rand(2, 1, 8, 8).double(), "R4")


@pytest.mark.parametrize("channels", [4, 5, 15, 16])
def test_features_without_pixels_have_poses(channels):
    """Sixteen channels of four poses are no grid of sixteen tokens; planted: poses that change places."""
    lifting, x = gsa.nn.LiftingConvolution("R4", 1, channels, 3).double(), torch.rand(2, 1, 12, 12).double()
    assert_equivariant(lambda x: lifting(x).mean((-1, -2)), x, "R4")
    with pytest.raises(AssertionError):
        assert_equivariant(lambda x: lifting(x).mean((-1, -2))[..., [1, 0, 2, 3]], x, "R4")


def test_what_has_four_axes_and_is_no_map_is_left_out():
    """As queries of attention are, [B, heads, N, d]."""

    class Heads(nn.Module):
        def forward(self, x):
            return x.flatten(2)[:, :, None].expand(-1, -1, 3, -1)

    network = nn.Sequential(nn.Conv2d(1, 2, 1), Heads(), nn.Flatten(2), nn.AdaptiveAvgPool1d(1), nn.Flatten()).double()
    for sides in ((6, 6), (4, 9)):
        report = gsa.symmetry.LayerReport.of(network, torch.rand(2, 1, *sides).double(), "R4")
        assert report.first_broken is None and report.unjudged["1"] == [2, 2, 3, 36]
    broken = gsa.symmetry.LayerReport.of(
        nn.Sequential(*network[:2], nn.Conv2d(2, 2, 3, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten()).double(),
        torch.rand(2, 1, 4, 9).double(), "R4",
    )  # fmt: skip
    assert broken.first_broken[0] != "1" and broken.given
    with pytest.raises(ValueError, match=r"must return what R4 can move.* but it returns the shape \[2, 2, 3, 36\]"):
        equivariance_error(network[:2], torch.rand(2, 1, 6, 6).double(), "R4")


def test_an_action_of_ones_own_that_lacks_something_is_refused():
    class Mine(gsa.symmetry.Action):
        elements = ("one",)

        def act(self, x, element):
            return x

        moved = act

    with pytest.raises(ValueError, match=r"but Mine lacks \['name', 'exact'\]"):
        equivariance_error(nn.Identity(), torch.rand(1, 1, 4, 4), Mine())


def test_of_several_maps_that_a_network_returns_the_worst_counts():
    """As of backbones, in lists or dictionaries; planted: the second of them, which a stride breaks."""

    class Backbone(nn.Module):
        def __init__(self, make, stride):
            super().__init__()
            self.first, self.second, self.make = nn.MaxPool2d(2), nn.MaxPool2d(1, stride), make

        def forward(self, x):
            return self.make(self.first(x), self.second(x))

    x = torch.rand(2, 1, 8, 8).double()
    for make in (lambda *maps: [*maps], lambda *maps: {"out": maps[0], "more": {"second": maps[1]}}):
        report = gsa.symmetry.LayerReport.of(Backbone(make, 1), x, "R4")
        assert report.broken == [] and report.first_broken is None
        report = gsa.symmetry.LayerReport.of(Backbone(make, 2), x, "R4")
        assert report.broken == [1, 2, 3] and report.first_broken[0] == "second"
    for measure in (gsa.symmetry.LayerReport.of, gsa.symmetry.layer_errors):
        with pytest.raises(
            ValueError, match="needs to be a torch.Tensor, but got list: .* torch.stack of a list of pict"
        ):
            measure(nn.Identity(), [torch.rand(1, 8, 8)], "R4")
