"""Convolutions of other people's networks, replaced by attention in every pose."""

import warnings

import pytest
import timm
import torch
import torchvision
from torch import nn
from torch.nn.utils import prune

import gsa
from gsa.encodings import EvenNeighbourhood
from gsa.nn import PosedAttention, replace_convolutions
from gsa.symmetry import assert_equivariant, equivariance_error

pytestmark = pytest.mark.usefixtures("float64")


def resnet18():
    model = torchvision.models.resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(1, 64, kernel_size=3, padding=1, bias=False)
    return model


def mobilenet():
    """Most of its filters have one channel each."""
    model = torchvision.models.mobilenet_v3_small(num_classes=10)
    model.features[0][0] = nn.Conv2d(1, 16, kernel_size=3, padding=1, bias=False)
    return model


@pytest.mark.parametrize("make", [resnet18, mobilenet])
def test_a_network_of_torchvision_becomes_invariant(make):
    model = make()
    count = sum(p.numel() for p in model.parameters())
    pictures = torch.rand(4, 1, 17, 17)
    assert max(equivariance_error(model.eval(), pictures, gsa.group("R4")).values()) > 1e-4
    replaced = replace_convolutions(model, "R4")
    assert replaced is model and not any(isinstance(m, nn.Conv2d) and m.kernel_size != (1, 1) for m in model.modules())
    assert sum(p.numel() for p in model.parameters()) < 1.01 * count
    model.train()(pictures)
    assert_equivariant(model.eval(), pictures, gsa.group("R4"))


@pytest.mark.slow
@pytest.mark.parametrize("name, side", [
    ("resnext50_32x4d", 33),
    ("efficientnet_b0", 33),
    ("regnet_y_400mf", 33),
    ("convnext_tiny", 64),  # of patches: 64 → 16 → 8 → 4 → 2
    ("timm/resnetv2_50", 33),
    ("timm/res2net50_14w_8s", 33),
    ("timm/rexnet_100", 33),
    ("timm/convnextv2_atto", 64),
])  # fmt: skip
def test_networks_of_other_libraries_become_invariant(name, side):
    library, _, own_name = name.rpartition("/")
    model = timm.create_model(own_name) if library else torchvision.models.get_model(own_name)
    for key, parameter in model.named_parameters():
        if (parameter.ndim == 1 and key.endswith("weight")) or "scale" in key or "gamma" in key:
            nn.init.ones_(parameter)  # branches that start at zero would hide what they do
    pictures = torch.rand(4, 3, side, side)
    replace_convolutions(model, "R4").train()(pictures)
    assert_equivariant(model.eval(), pictures, gsa.group("R4"), tolerance=1e-12)


def test_what_cannot_be_replaced_is_named_and_nothing_is_changed():
    model = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, (3, 1)), nn.Conv2d(4, 4, 3, padding=2))
    before = list(model)
    with pytest.raises(
        ValueError, match=r"cannot be replaced; skip=… leaves some as they are, .*:\n1: .*\n2: .* 1 pixels of padding"
    ):
        replace_convolutions(model, "R4")
    assert list(model) == before
    with pytest.raises(ValueError, match="the same kernel_size in both directions"):
        replace_convolutions(nn.Conv2d(2, 4, (3, 1)), "R4")
    with pytest.raises(ValueError, match=r"takes images \[B, 2, H, W\], but got the shape \[1, 3, 5, 5\]"):
        PosedAttention("R4", 2, 3)(torch.rand(1, 3, 5, 5))
    with pytest.raises(ValueError, match="channel_groups must divide in_channels=4 and out_channels=6, but got 4"):
        PosedAttention("R4", 4, 6, channel_groups=4)
    with pytest.raises(ValueError, match="border must be one of .*, but got 'mirror'"):
        replace_convolutions(nn.Conv2d(2, 3, 3), "R4", border="mirror")


@pytest.mark.parametrize("other, rule", [
    (nn.Conv2d(2, 2, 4, padding="same"), "with as much padding on all sides, but"),
    (nn.Conv2d(2, 2, 3, padding=2), "with at most 1 pixels of padding, but"),
    (nn.Conv2d(2, 2, 4, padding=3), "with at most 2 pixels of padding, but"),
])  # fmt: skip
def test_refusals_name_the_rule_that_is_broken(other, rule):
    with pytest.raises(ValueError, match=f"0: attention replaces convolutions {rule} got Conv2d"):
        replace_convolutions(nn.Sequential(other), "R4")


def test_windows_between_pixels_are_not_asked_for_where_they_reach_beyond():
    with pytest.raises(ValueError, match="all of a 4×4 window must be in the picture, .* expected crop=2 or more"):
        PosedAttention("R4", 2, 3, 4, crop=1)
    with pytest.raises(ValueError, match=r"0: at corners of pixels all of a 2×2 window"):
        replace_convolutions(nn.Sequential(nn.Conv2d(2, 2, 2, padding=1)), "R4", border="hidden")
    assert PosedAttention("R4", 2, 3, 4, crop=2)(torch.rand(1, 2, 5, 6)).shape == (1, 3, 2, 3)
    with pytest.raises(ValueError, match="leaves nothing of a 3×6 map"):
        PosedAttention("R4", 2, 3, 4, crop=2)(torch.rand(1, 2, 3, 6))
    x, scores, window = torch.rand(1, 2, 1, 5, 6), torch.rand(3, 4, 1, 2, 2), torch.ones(2, 2, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"windows of even sides, here \[2, 2\], .* must be at least 1, but is 0"):
        gsa.ops.attend_by_position(x, scores, window, None, torch.rand(4, 3, 2))
    with pytest.raises(ValueError, match="window must hold a pixel, but holds none"):
        gsa.ops.attend_by_position(x, scores, ~window, None, torch.rand(4, 3, 2), padding=1)
    for size, window in ((3, "square"), (0, "square"), (2, "disk")):
        with pytest.raises(ValueError, match="is a square of an even number of pixels"):
            EvenNeighbourhood(size, window)


def test_wide_dilation_warns_of_what_it_costs():
    """625 pixels in place of 9 are 69 times as many; 81, of dilation 4, are not worth a word."""
    with pytest.warns(UserWarning, match="looks at all 25×25 pixels: 69 times the products"):
        replace_convolutions(nn.Conv2d(1, 1, 3, dilation=12), "R4")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replace_convolutions(nn.Conv2d(1, 1, 3, dilation=4), "R4")


def test_a_convolution_that_is_shared_is_replaced_everywhere():
    shared = nn.Conv2d(2, 2, 3, padding=1)
    model = replace_convolutions(nn.Sequential(shared, nn.ReLU(), shared), "R4")
    assert isinstance(model[0], PosedAttention) and model[0] is model[2]
    assert_equivariant(model, torch.randn(2, 2, 7, 7), gsa.group("R4"))


def hooked(convolution, register="register_forward_hook"):
    getattr(convolution, register)(lambda *anything: None)
    return convolution


def test_frozen_convolutions_stay_frozen_and_modes_stay():
    model = nn.Sequential(nn.Conv2d(2, 2, 3, padding=1)).requires_grad_(False).eval()
    replace_convolutions(model, "R4")
    assert not any(p.requires_grad for p in model.parameters()) and not model[0].training


@pytest.mark.parametrize(
    "other",
    [
        nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular"),
        nn.utils.parametrizations.weight_norm(nn.Conv2d(2, 2, 3)),
        nn.utils.spectral_norm(nn.Conv2d(2, 2, 3)),
        prune.random_unstructured(nn.Conv2d(2, 2, 3), "weight", 0.5),
        hooked(nn.Conv2d(2, 2, 3)),
        nn.ConvTranspose2d(2, 2, 3),
        nn.ConvTranspose2d(2, 2, 1, stride=2, output_padding=1),  # these look at one pixel, but not alike both ways
        nn.Conv2d(2, 2, 1, stride=(2, 1), padding_mode="circular"),
        hooked(nn.Conv2d(2, 2, 3), "register_full_backward_pre_hook"),
        type("Mine", (nn.Conv2d,), {})(2, 2, 3),
    ],
)
def test_convolutions_of_another_kind_are_refused(other):
    with pytest.raises(ValueError, match="0: attention replaces plain nn.Conv2d"):
        replace_convolutions(nn.Sequential(other), "R4")


def test_networks_without_convolutions_stay_as_they_are_and_are_told_of(recwarn):
    model = nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU())
    first = model[0]
    with pytest.warns(UserWarning, match="Sequential has no convolution of more than one pixel"):
        assert replace_convolutions(model, "R4")[0] is first
    model = nn.Sequential(replace_convolutions(nn.Conv2d(2, 2, 3), "R4"))
    assert replace_convolutions(model, "R4") is model and isinstance(model[0], PosedAttention) and not recwarn


def test_weights_that_two_modules_share_are_refused_and_modules_that_are_shared_stay_so():
    model = nn.Sequential(nn.Conv2d(2, 2, 3), nn.Conv2d(2, 2, 3))
    model[1].weight = model[0].weight
    with pytest.raises(ValueError, match="1: its weights are those of another module as well"):
        replace_convolutions(model, "R4")
    shared = nn.Conv2d(2, 2, 3)
    model = replace_convolutions(nn.Sequential(shared, shared), "R4")
    assert isinstance(model[0], PosedAttention) and model[0] is model[1]


def hooked_on_the_way_back(convolution):
    convolution.register_full_backward_hook(lambda *anything: None)
    return convolution


def test_padding_that_is_the_same_and_hooks_on_the_way_back():
    options = {"kernel_size": 3, "padding": "same", "dilation": 2}
    layer = PosedAttention.of_convolution(nn.Conv2d(2, 3, **options), "Z2")
    x = torch.randn(2, 2, 17, 15)
    assert layer(x).shape == nn.Conv2d(2, 3, **options)(x).shape
    with pytest.raises(ValueError, match="0: attention replaces plain nn.Conv2d"):
        replace_convolutions(nn.Sequential(hooked_on_the_way_back(nn.Conv2d(2, 2, 3))), "R4")


def test_convolutions_along_one_axis_are_refused():
    for size in ((1, 3), (3, 1)):
        with pytest.raises(ValueError, match="0: attention replaces convolutions with the same kernel_size in both"):
            replace_convolutions(nn.Sequential(nn.Conv2d(2, 2, size)), "R4")


def test_convolutions_along_channels_are_skipped_by_name():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sequential(nn.Flatten(2), nn.Conv1d(4, 4, 3)))
    with pytest.raises(ValueError, match=r"skip=… leaves some as they are, .* picture:\n1\.1: "):
        replace_convolutions(model, "R4")
    with pytest.raises(ValueError, match=r"such as \['0', '1.1'\], but got \['1'\]$"):
        replace_convolutions(model, "R4", skip=["1"])
    for wrong in ("1.1", ["x"]):
        with pytest.raises(ValueError, match="skip is a list of names"):
            replace_convolutions(model if wrong == "1.1" else nn.Conv2d(3, 4, 3), "R4", skip=wrong)
    shared = nn.Conv2d(4, 4, 3)
    twice = replace_convolutions(nn.Sequential(shared, shared), "R4", skip=["0"])
    assert twice[0] is twice[1] is shared
    replaced = replace_convolutions(model, "R4", skip=["1.1"])
    assert type(replaced[0]) is PosedAttention and type(replaced[1][1]) is nn.Conv1d


class Filters(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(3, 3, 3, 3))


@pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning", "ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("made", [Filters, lambda: torch.jit.script(nn.Sequential(nn.Conv2d(1, 1, 3)))])
def test_filters_of_other_classes_are_refused_and_not_passed_over(made):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), made())
    with pytest.raises(ValueError, match=r"cannot be replaced; (?s:.)*\n1(\.0)?: attention replaces plain nn.Conv2d"):
        replace_convolutions(model, "R4")
    assert type(model[0]) is nn.Conv2d


def test_attention_in_the_place_of_convolutions_has_no_empty_parameter_to_train():
    """Which optimizers that divide by sizes cannot take."""
    model = replace_convolutions(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten()), "R4")
    model(torch.rand(2, 3, 5, 5)).sum().backward()
    torch.optim.Adafactor(model.parameters()).step()
    planted = nn.Parameter(torch.empty(2, 0))
    planted.grad = torch.zeros_like(planted)
    with pytest.raises(ZeroDivisionError):
        torch.optim.Adafactor([planted]).step()
