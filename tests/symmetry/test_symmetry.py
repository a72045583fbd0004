"""The measures themselves: known errors are reported, planted failures caught, claims kept apart."""

import math
from functools import partial

import pytest
import torch
from torch import nn

import gsa
from gsa.symmetry import (
    LayerReport,
    Shifts,
    TokenPermutations,
    assert_equivariant,
    equivariance_error,
    layer_errors,
    permutation_error,
    translation_error,
)
from gsa.symmetry._measure import measured_group

R4 = gsa.group("R4")


def test_errors_are_the_formula():
    """Φ(x) = x + w with w on one pixel: ‖L_g w − w‖ = √2‖w‖ when g moves the pixel."""
    x = torch.rand(1, 1, 4, 4, dtype=torch.float64)
    spot = torch.zeros_like(x)
    spot[..., 0, 0] = 3
    errors = equivariance_error(lambda x: x + spot, x, R4)
    expected = math.sqrt(2) * 3 / (x + spot).norm().item()
    assert errors[0] == 0
    assert all(abs(errors[g] - expected) < 1e-12 for g in (1, 2, 3))
    eighth = (spot - gsa.group("R8").act(spot, 1)).norm() / (x + spot).norm()  # which is not turned, and loses nothing
    assert equivariance_error(lambda x: x + spot, x, "R8")[1] == pytest.approx(eighth.item())


def test_the_output_says_what_the_action_means():
    image = torch.rand(2, 3, 6, 6)
    feature = torch.rand(2, 3, 4, 6, 6)
    for invariant in (lambda x: x.flatten(2).sum(-1), lambda x: x.flatten(2).amax(-1)):
        assert max(equivariance_error(invariant, image, R4).values()) < 1e-6
        assert max(equivariance_error(invariant, feature, R4).values()) < 1e-6
    assert max(equivariance_error(torch.relu, image, R4).values()) == 0
    assert max(equivariance_error(torch.relu, feature, R4).values()) == 0
    assert max(equivariance_error(lambda x: x.amax(2), feature, R4).values()) == 0


def test_a_convolution_is_equivariant_to_translations_only():
    convolution, x = nn.Conv2d(1, 2, 3, padding=1).double(), torch.rand(1, 1, 9, 9, dtype=torch.float64)
    assert translation_error(convolution, x, (2, -1), margin=3) < 1e-14
    assert translation_error(convolution, x, (2, -1), margin=0) > 1e-3  # the border is seen
    with pytest.raises(AssertionError, match="Conv2d is not equivariant under 90°, 180°, 270°"):
        assert_equivariant(convolution, x, R4)


def test_maps_that_are_not_square_are_turned():
    x, layer = torch.rand(2, 3, 8, 6, dtype=torch.float64), nn.Sequential(nn.Conv2d(3, 4, 1)).double()
    assert max(assert_equivariant(layer, x, R4).exact.values()) < 1e-14
    assert max(layer_errors(layer, x, R4)["0"].values()) < 1e-14


def test_other_symmetries_are_asserted_alike():
    """Planted: a border of zeros, places of tokens."""
    x = torch.rand(2, 3, 8, 8, dtype=torch.float64)
    shifts = Shifts((1, 0), (3, 5))
    cyclic = nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular").double()
    report = assert_equivariant(cyclic, x, shifts)
    assert report.symmetry is shifts and list(report.exact) == [0, 1] and "3,5" in str(report)
    with pytest.raises(AssertionError, match="Conv2d is not equivariant under 1,0, 3,5"):
        assert_equivariant(nn.Conv2d(3, 4, 3, padding=1).double(), x, shifts)
    assert_equivariant(nn.Conv2d(3, 4, 3, padding=1).double(), x, Shifts((1, 0), (2, -1), margin=1))
    block, tokens = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).double(), torch.rand(2, 5, 8).double()
    orders, places = TokenPermutations.random(5), torch.rand(5, 8).double()
    assert_equivariant(block, tokens, orders)
    with pytest.raises(AssertionError, match="not equivariant under"):
        assert_equivariant(lambda z: block(z + places), tokens, orders)
    with pytest.raises(ValueError, match=r"must return what orders of tokens can move.*\[2, 4, 8\]"):
        equivariance_error(lambda z: z[:, 1:], tokens, orders)


def test_a_permuted_pose_axis_is_caught():
    """Planted failure: poses in another order pass as a set, and fail as a feature of the group."""
    layer = gsa.nn.LiftingSelfAttention(R4, 1, 2, 2, 6, 3).double()
    x = torch.rand(1, 1, 6, 6, dtype=torch.float64)
    assert_equivariant(layer, x, R4)
    with pytest.raises(AssertionError, match="not equivariant under 90°, 270°"):
        assert_equivariant(lambda x: layer(x)[:, :, [0, 3, 2, 1]], x, R4)


def test_exact_and_sampled_claims_are_kept_apart():
    group = gsa.group("R8")
    layer = gsa.nn.LiftingSelfAttention(group, 1, 2, 2, 6, 3).double()
    report = assert_equivariant(layer, torch.rand(1, 1, 9, 9, dtype=torch.float64), group)
    assert list(report.exact) == [0, 2, 4, 6] and list(report.sampled) == [1, 3, 5, 7]
    assert max(report.exact.values()) < 1e-10 < 1e-3 < min(report.sampled.values())
    text = str(report)
    assert text.count("exact\n") + text.endswith("exact") == 4 and text.count("sampled") == 4
    assert "45°" in text and "too large" not in text


def test_the_failure_names_elements_and_shows_all_errors():
    with pytest.raises(AssertionError) as failure:
        assert_equivariant(nn.Flatten(), torch.rand(1, 1, 3, 3), gsa.group("R4M"))
    text = str(failure.value)
    assert text.startswith("Flatten is not equivariant under 90°") and text.count("too large") == 7
    assert "mirror, then 180°" in text


def test_nan_is_not_a_success():
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_equivariant(lambda x: x * torch.nan, torch.rand(1, 1, 4, 4), R4)


def test_the_tolerance_follows_the_dtype_and_can_be_given():
    x = torch.rand(1, 1, 8, 8)
    almost = lambda x: x + 1e-4 * torch.arange(8.0)  # noqa: E731
    with pytest.raises(AssertionError):
        assert_equivariant(almost, x, R4)
    assert assert_equivariant(almost, x, R4, tolerance=1e-2).tolerance == 1e-2


def test_measuring_happens_in_eval_mode_and_leaves_every_mode_as_it_was():
    module = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm2d(1))
    module[1].eval()
    assert max(equivariance_error(module, torch.rand(1, 1, 4, 4), R4).values()) < 1e-6
    assert module.training and module[0].training and not module[1].training


def test_permutations():
    x, permutation = torch.rand(1, 2, 3, 4), torch.randperm(12)
    assert permutation_error(torch.relu, x, permutation) == 0
    assert permutation_error(lambda x: x.flatten(2).sum(-1), x, permutation) < 1e-6
    assert permutation_error(lambda x: x.cumsum(-1), x, permutation) > 1e-2


def test_modules_that_work_in_place_are_judged_alike_and_leave_the_picture():
    x = torch.randn(1, 3, 8, 8)
    kept = x.clone()
    module = torch.nn.Hardswish(inplace=True)
    assert max(gsa.symmetry.equivariance_error(module, x, "R4").values()) == 0
    assert gsa.symmetry.translation_error(module, x, 1, 2) == 0
    assert gsa.symmetry.permutation_error(module, x, torch.randperm(64)) == 0
    errors = gsa.symmetry.layer_errors(torch.nn.Sequential(module, torch.nn.Conv2d(3, 3, 1)), x, "R4")
    assert max(error for of_layer in errors.values() for error in of_layer.values()) < 1e-5
    assert torch.equal(x, kept)


@pytest.mark.parametrize("asked", [
    lambda network: network.forward,
    lambda network: partial(network),
    lambda network: partial(network.forward),
])  # fmt: skip
def test_methods_and_partial_calls_are_evaluated_too(asked):
    network = nn.Sequential(nn.BatchNorm2d(1), nn.Dropout(0.5))
    x, before = torch.rand(2, 1, 6, 6), network[0].running_mean.clone()
    assert equivariance_error(asked(network), x, "R4")[1] < 1e-6
    assert network.training and network[1].training and torch.equal(network[0].running_mean, before)


def test_gpus_do_not_round_what_is_measured():
    products = torch.backends.cudnn.conv, torch.backends.cuda.matmul
    before, inside = [p.fp32_precision for p in products], []

    def note(x):
        inside.extend(p.fp32_precision for p in products)
        return x

    equivariance_error(note, torch.rand(1, 1, 4, 4), "Z2M")
    assert set(inside) == {"ieee"} and [p.fp32_precision for p in products] == before


def test_errors_of_translations_are_the_formula():
    """Φ(x) = x + w with w on one pixel of the interior: ‖T w − w‖ = √2‖w‖, and the border counts nothing."""
    x, spot = torch.rand(1, 1, 9, 9, dtype=torch.float64), torch.zeros(1, 1, 9, 9, dtype=torch.float64)
    spot[..., 4, 4] = 3
    expected = math.sqrt(2) * 3 / (x + spot)[..., 2:-2, 2:-2].norm().item()
    assert abs(translation_error(lambda x: x + spot, x, (1, -1), margin=2) - expected) < 1e-12
    with pytest.raises(ValueError, match="a margin of -1 leaves nothing"):
        translation_error(torch.relu, x, 1, margin=-1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_what_is_broken_is_broken_in_half_precision(dtype):
    x = torch.rand(1, 1, 8, 8, dtype=dtype)
    assert_equivariant(torch.relu, x, "R4")
    with pytest.raises(AssertionError, match="not equivariant under 90°, 180°, 270°"):
        assert_equivariant(nn.Conv2d(1, 2, 3, padding=1, dtype=dtype), x, "R4")


@pytest.mark.parametrize("measure", [
    lambda f, x: equivariance_error(f, x, R4)[1],
    lambda f, x: translation_error(f, x, 2, 3),
    lambda f, x: permutation_error(f, x, torch.arange(81).roll(5)),
])  # fmt: skip
def test_imaginary_parts_and_tiny_and_large_numbers_are_seen(measure, float64):
    x, kernel = torch.rand(2, 1, 9, 9), torch.rand(1, 1, 3, 3)
    ramp = torch.linspace(0, 1, 81).view(9, 9)

    def broken(x):
        return torch.conv2d(x, kernel, padding=1) + ramp

    expected = measure(broken, x)
    assert expected > 0.01
    for size in (1e-170, 1e170):
        assert measure(lambda x, size=size: size * broken(x), x) == pytest.approx(expected)
    assert measure(lambda x: torch.complex(torch.zeros_like(x), broken(x)), x) == pytest.approx(expected)
    assert measure(lambda x: broken(x) > broken(x).mean(), x) > 0.01


def test_an_output_that_is_used_again_is_kept_for_the_comparison():
    class Buffered(nn.Module):
        def forward(self, x):
            self.kept = 2 * x if not hasattr(self, "kept") else self.kept.copy_(2 * x)
            return self.kept

    x = torch.rand(1, 1, 6, 6)
    assert max(equivariance_error(Buffered(), x, R4).values()) == 0
    assert translation_error(Buffered(), x, 1, 2) == 0
    assert gsa.symmetry.layer_errors(nn.Sequential(Buffered()), x, R4)["Sequential"][1] == 0


def test_a_report_shows_itself_in_a_notebook():
    x = torch.rand(1, 1, 8, 8, dtype=torch.float64)
    for report in (assert_equivariant(torch.sin, x, "R4"), LayerReport.of(torch.nn.ReLU(), x, "R4")):
        assert "270°" in repr(report) and repr(report) == str(report)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_layers_are_judged_as_the_whole_is(dtype):
    x = torch.rand(1, 1, 8, 8, dtype=dtype)
    of_layers = [LayerReport.of(torch.nn.SiLU(), x, group="R4", backward=backward) for backward in (False, True)]
    whole = assert_equivariant(torch.nn.SiLU(), x, group="R4").tolerance
    assert [report.tolerance for report in of_layers] == [whole, 10 * whole]


def test_networks_without_poses_are_measured_under_quarter_turns():
    assert measured_group(None).name == measured_group(gsa.group("Z2")).name == "R4"
    assert measured_group(gsa.group("R2")).name == "R2"
