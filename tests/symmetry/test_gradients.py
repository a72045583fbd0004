"""Gradients move with the input, and those of weights stay; where they do not, the place is named."""

import json
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock

import gsa
from gsa.symmetry import LayerReport, Shifts, TokenPermutations, gradient_errors
from gsa.symmetry._norm import zero_beside
from tests.symmetry.test_actions import Causal, encoder, perturbed_vit

pytestmark = pytest.mark.usefixtures("float64")


def network():
    torch.manual_seed(0)
    return gsa.create_model("digits_r4_sa").double().eval(), torch.rand(2, 1, 12, 12)


def test_every_gradient_of_ours_follows_quarter_turns_and_weights_have_the_same():
    ours, x = network()
    report = LayerReport.of(ours, x, "R4", backward=True)
    assert report.backward and report.broken == [] and report.first_broken is None
    *rows, last = report.errors
    weights = {name for name, weight in ours.named_parameters() if weight.requires_grad}
    assert last == "the input" and weights < set(rows) and {"lifting", "stages.2.0"} < set(rows)
    assert rows.index("head.weight") < rows.index("stages.2.0") < rows.index("stages.1.0") < rows.index("lifting")


def test_the_gradient_is_that_of_autograd():
    """Of a map whose derivative is known: F(x) = x², so that ∂l/∂x = 2 v x."""

    class Square(nn.Module):
        def forward(self, x):
            return x**2

    assert gradient_errors(Square(), torch.rand(2, 1, 6, 6), "R4")["the input"] == {0: 0, 1: 0, 2: 0, 3: 0}
    ramp = torch.arange(36.0).view(6, 6)

    class Planted(nn.Module):
        def forward(self, x):
            return ramp * x

    x = torch.rand(2, 1, 6, 6)
    v = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=x.dtype)
    turned = (ramp - ramp.rot90()) * v.rot90(1, (-2, -1))
    expected = (turned.norm() / (ramp * v).norm()).item()
    assert gradient_errors(Planted(), x, "R4")["the input"][1] == pytest.approx(expected)


def test_what_sampling_loses_is_reported_forward_and_backward():
    ours, x = network()
    for backward in (False, True):
        report = LayerReport.of(ours, x, "R8", backward=backward)
        assert report.broken == [] and report.first_broken is None
        *_, last = report.errors.values()
        assert all(1e-3 < last[g] < 1 for g in (1, 3, 5, 7)) and "~" in str(report)


def test_planted_an_encoding_in_the_third_block_is_named_forward_and_backward():
    ours, x = network()
    third = ours.stages[2][0].attention[2]
    third.encoding.inverse_matrices = torch.eye(2).expand(4, 2, 2).clone()
    forward, backward = (LayerReport.of(ours, x, "R4", backward=back) for back in (False, True))
    for report in (forward, backward):
        assert report.first_broken[0].startswith("stages.2.0.attention.2.") and report.first_broken[1] < 1e-12
        assert report.broken == [1, 2, 3]
    assert backward.worst("lifting.out.weight") > 1e-3  # all that comes before it learns something else
    told = json.loads(json.dumps(backward.as_dict()))
    assert told["backward"] and told["first_broken"] == backward.first_broken[0] and "the input" in told["layers"]
    assert f"first broken on the way back at {told['first_broken']}" in str(backward)


def test_gradients_of_tokens_are_permuted_but_not_past_a_causal_mask():
    x, orders = torch.randn(2, 6, 8), TokenPermutations.random(6)
    report = LayerReport.of(encoder(2), x, orders, backward=True)
    assert report.broken == [] and "layers.0.self_attn.in_proj_weight" in report.errors
    assert LayerReport.of(Causal(), x, orders, backward=True).first_broken[0].startswith("encoder.layers.0.self_attn")


def test_the_positions_of_a_vit_learn_something_else_from_a_shifted_picture():
    vit, x = perturbed_vit(), torch.rand(2, 3, 16, 16)
    report = LayerReport.of(vit, x, Shifts((4, 0), (0, 8)), backward=True)
    assert report.first_broken[0] == "encoder.pos_embedding" and report.first_broken[1] < 1e-12
    assert report.worst("the input") > 1e-2
    vit.encoder.pos_embedding = nn.Parameter(torch.zeros_like(vit.encoder.pos_embedding), requires_grad=False)
    report = LayerReport.of(vit, x, Shifts((4, 0), (2, 0)), backward=True)
    assert report.broken == [1] and report.first_broken is None and "is not told" in str(report)  # half a patch


def test_layers_in_place_and_kernels_that_turn():
    torch.manual_seed(0)
    block = BasicBlock(4, 4).eval()
    report = LayerReport.of(block, torch.randn(2, 4, 8, 8), "R2", backward=True)
    assert report.first_broken[0] == "conv2.weight" and {"relu", "conv1.weight"} < set(report.errors)
    relu = nn.Sequential(nn.BatchNorm2d(2), nn.ReLU(inplace=True)).eval()
    assert LayerReport.of(relu, torch.randn(2, 2, 6, 6), "R4M", backward=True).broken == []


def test_a_constant_that_breaks_the_outputs_alone_is_said_to_be_none_of_the_derivatives():
    ours = nn.Sequential(nn.Conv2d(1, 2, 1), Ramp(), nn.GELU())
    report = LayerReport.of(ours, torch.rand(2, 1, 6, 6), "R4", backward=True)
    assert report.broken and report.first_broken is None and "no derivative breaks it by itself" in str(report)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_that_are_zero_but_for_rounding_are_not_broken(dtype):
    """A bias of the last map of a functional encoding moves all scores of a query alike."""
    torch.manual_seed(0)
    layers = gsa.nn.LiftingSelfAttention("R4", 1, 3, 3), gsa.nn.GroupSelfAttention("R4", 3, 2, 3)
    network, x = nn.Sequential(*layers).to(dtype), torch.randn(2, 1, 6, 6, dtype=dtype)
    report = LayerReport.of(network, x, "R4", None if dtype == torch.float32 else 1e-10, backward=True)
    assert "1.encoding.row.3.bias" in report.errors and report.broken == [], report
    network[1].encoding.inverse_matrices = torch.eye(2).expand(4, 2, 2).clone()  # planted
    assert LayerReport.of(network, x, "R4", backward=True).broken == [1, 2, 3]


def test_a_weight_alone_can_learn_something_else():
    report = LayerReport.of(nn.Sequential(nn.Conv2d(1, 2, 1), Positions()), torch.rand(2, 1, 6, 6), "R4", backward=True)
    assert report.worst("the input") == 0 and report.broken == [1, 2, 3] and report.first_broken[0] == "1.positions"
    small = gradient_errors(Positions(1e-6), torch.rand(2, 1, 6, 6), "R4")  # beside that of the input
    assert small["positions"][1] > 0.1


class Positions(nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.positions, self.scale = nn.Parameter(torch.zeros(6, 6)), scale

    def forward(self, x):
        return x + self.scale * self.positions


class Ramp(nn.Module):
    def forward(self, x):
        return x + torch.arange(6.0)


def test_an_activation_whose_gradient_is_zero_but_for_rounding_is_not_broken():
    """What is added to all pixels alike, and taken away with their mean."""

    class Raised(nn.Module):
        def __init__(self):
            super().__init__()
            self.height = nn.Tanh()

        def forward(self, x):
            x = x + self.height(x.mean((-2, -1)))[..., None, None]
            return x - x.mean((-2, -1), keepdim=True)

    report = LayerReport.of(Raised(), torch.rand(2, 3, 6, 6), "R4", backward=True)
    assert "height" in report.errors and report.broken == [], report


def test_an_output_without_gradients_is_refused():
    class Detached(nn.Module):
        def forward(self, x):
            return x.detach()

    with pytest.raises(ValueError, match="its output has none"):
        gradient_errors(Detached(), torch.rand(1, 1, 4, 4), "R4")


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


class Named(nn.Module):
    def forward(self, x):
        return Pair(x * 2, x)


class Sum(nn.Module):
    def forward(self, pair):
        return pair.first + pair.second


def test_layers_that_return_named_tuples_are_judged_apart():
    network = nn.Sequential(nn.Conv2d(1, 2, 1), Named(), Sum()).double()
    errors = gradient_errors(network, torch.rand(2, 1, 6, 6).double(), "R8", apart=True)  # of exact elements alone
    assert "1" in errors and max(max(of_one.values()) for of_one in errors.values()) < 1e-12


def test_gradients_may_be_off_by_ten_times_as_much():
    layer = nn.Conv2d(1, 1, 1)
    told = [LayerReport.of(layer, torch.rand(1, 1, 4, 4), "R4", backward=way).tolerance for way in (False, True)]
    assert told == pytest.approx([1e-10, 1e-9])


def test_what_counts_as_zero_beside_gradients():
    """The fourth root of the 2⁻⁵² of float64."""
    assert zero_beside([torch.tensor([3.0, 4.0]), torch.ones(1)]) == pytest.approx(5 * 2**-13)
