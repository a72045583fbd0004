"""Inputs that nothing moves, of another dtype, or answered at random: said in words, not as errors of zero."""

import pytest
import torch
from torch import nn

import gsa
from gsa.symmetry import (
    Shifts,
    TokenPermutations,
    assert_equivariant,
    equivariance_error,
    gradient_errors,
    layer_errors,
    permutation_error,
    translation_error,
)

pytestmark = pytest.mark.usefixtures("float64")


def broken():
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 3))


@pytest.mark.parametrize("symmetry", ["R4", "R8", Shifts((1, 0))])
@pytest.mark.parametrize("measure", [assert_equivariant, equivariance_error, layer_errors, gradient_errors])
def test_a_picture_that_nothing_moves_is_refused(measure, symmetry):
    name = symmetry if isinstance(symmetry, str) else symmetry.name
    with pytest.raises(ValueError, match=rf"{name} moves nothing of this input.*\[1, 1, 6, 6\] stays as it is"):
        measure(broken(), torch.ones(1, 1, 6, 6), symmetry)


def test_pictures_that_some_elements_move_are_judged():
    half = torch.rand(1, 1, 6, 6)
    half = half + half.rot90(2, (-2, -1))  # 180° leaves it, 90° does not
    errors = equivariance_error(broken(), half, "R4")
    assert errors[2] < 1e-10 < 1e-2 < min(errors[1], errors[3])
    with pytest.raises(AssertionError, match="not equivariant under 90°, 270°"):
        assert_equivariant(broken(), half, "R4")


@pytest.mark.parametrize("group", ["Z2", "R3"])
def test_groups_of_which_only_the_identity_is_exact_can_be_measured(group):
    assert equivariance_error(broken(), torch.rand(1, 1, 6, 6), group)[0] == 0


def test_of_a_single_pixel_poses_are_judged():
    layer, x = gsa.nn.LiftingSelfAttention("R4", 1, 2, 2, 6, 3), torch.rand(2, 1, 1, 1)
    assert_equivariant(layer, x, "R4")
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_equivariant(
            lambda x: layer(x) + torch.rand(4, 1, 1, generator=torch.Generator().manual_seed(0)), x, "R4"
        )


def test_orders_and_shifts_that_move_nothing_are_refused():
    x, tokens, convolution = torch.rand(1, 1, 6, 6), torch.rand(2, 5, 4), nn.Conv2d(1, 2, 3, padding=1)
    for measure in (
        lambda: permutation_error(convolution, x, torch.arange(36)),
        lambda: permutation_error(convolution, torch.ones_like(x), torch.randperm(36)),
        lambda: translation_error(convolution, torch.ones_like(x), 1, 2),
        lambda: assert_equivariant(nn.Linear(4, 4), tokens, TokenPermutations([0, 1, 2, 3, 4])),
    ):
        with pytest.raises(ValueError, match="moves nothing of this input"):
            measure()
    among_others = TokenPermutations([0, 1, 2, 3, 4], [4, 3, 2, 1, 0])
    assert max(assert_equivariant(nn.Linear(4, 4), tokens, among_others).exact.values()) < 1e-14


def test_pictures_of_another_dtype_are_refused_in_words():
    layer, x = nn.Conv2d(1, 2, 3, padding=1), torch.rand(1, 1, 6, 6).float()
    said = r"Conv2d takes, such as the torch.float64 of its weights, but is torch.float32"
    for measure in (
        lambda x: assert_equivariant(layer, x, "R4"),
        lambda x: layer_errors(layer, x, "R4"),
        lambda x: translation_error(layer, x, 1, 2),
    ):
        with pytest.raises(ValueError, match=said):
            measure(x)
        with pytest.raises(RuntimeError):  # not for the dtype
            measure(torch.rand(1, 2, 6, 6))


def test_of_what_answers_at_random_the_failure_says_so():
    x, dropout = torch.rand(1, 1, 6, 6), nn.Dropout(0.5)
    with pytest.raises(AssertionError, match=r"other outputs for the same input: .* Call eval\(\)"):
        assert_equivariant(lambda x: dropout(x), x, "R4")  # which hides that it is in train mode
    for module in (broken(), lambda x: x * torch.nan):
        with pytest.raises(AssertionError) as failure:
            assert_equivariant(module, x, "R4")
        assert "eval()" not in str(failure.value)


@pytest.mark.parametrize("older", [True, False])
@pytest.mark.parametrize("precision", ["tf32", "ieee"])
def test_settings_of_tf32_are_read_inside_and_put_back(monkeypatch, precision, older):
    """The older setting, too, which torch refuses to tell while a newer one differs."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", older)

    def network(x):
        with torch.backends.cudnn.flags(enabled=True):  # reads the older of torch's two settings
            return x.square()

    def settings():
        return [torch.backends.cudnn.rnn.fp32_precision, torch.backends.cudnn.conv.fp32_precision]

    own = torch.backends.cudnn.conv.fp32_precision
    try:
        torch.backends.cudnn.conv.fp32_precision = precision
        before = settings()
        assert max(gsa.symmetry.equivariance_error(network, torch.rand(1, 1, 6, 6), "R4").values()) == 0
        assert settings() == before
    finally:
        torch.backends.cudnn.conv.fp32_precision = own
    assert torch.backends.cudnn.allow_tf32 is older


def test_tensors_made_inside_are_on_the_cpu_whatever_the_default_is():
    layer, x = gsa.nn.GroupSelfAttention("R4", 2, 2, head_dim=6).double(), torch.rand(1, 2, 4, 5, 5).double()
    tokens, more = torch.nn.Linear(3, 3), torch.rand(1, 4, 3)
    with torch.device("meta"):
        gsa.symmetry.assert_equivariant(layer, x, "R4")
        orders = gsa.symmetry.TokenPermutations.random(4, axis=1)
        assert max(gsa.symmetry.equivariance_error(tokens, more, orders).values()) < 1e-6
        gsa.symmetry.gradient_errors(layer, x, "R4")
