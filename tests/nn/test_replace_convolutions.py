"""Convolutions of other people's networks, replaced by attention in every pose."""

import copy
import warnings

import pytest
import timm
import torch
from torch import nn
from torch.nn.utils import prune

import gsa
from gsa.encodings import Rectangle
from gsa.nn import PosedAttention, replace_convolutions
from gsa.symmetry import assert_equivariant

pytestmark = pytest.mark.usefixtures("float64")


def test_what_cannot_be_replaced_is_named_and_nothing_is_changed():
    model = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, (3, 1)), nn.Conv2d(4, 4, 4, padding="same"))
    before = list(model)
    with pytest.raises(
        ValueError,
        match=r"cannot be replaced; skip=… leaves some as they are, .*:\n1: .*\n2: .* as much padding on all sides",
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


def test_refusals_name_the_rule_that_is_broken():
    with pytest.raises(
        ValueError, match="0: attention replaces convolutions with as much padding on all sides, but got"
    ):
        replace_convolutions(nn.Sequential(nn.Conv2d(2, 2, 4, padding="same")), "R4")
    for side, most in ((3, 1), (4, 2)):
        convolution = nn.Conv2d(2, 2, side, padding=most + 1)
        rule = (
            f"0: attention with hidden keys replaces convolutions with at most {most} pixels of padding, but got Conv2d"
        )
        with pytest.raises(ValueError, match=rule):
            replace_convolutions(nn.Sequential(convolution), "R4", border="hidden")
        assert replace_convolutions(convolution, "R4").crop == -1


def test_windows_between_pixels_are_asked_for_before_each_and_after_the_last():
    assert PosedAttention("R4", 2, 3, 4)(torch.rand(1, 2, 5, 6)).shape == (1, 3, 6, 7)
    assert PosedAttention("R4", 2, 3, 4, crop=2)(torch.rand(1, 2, 5, 6)).shape == (1, 3, 2, 3)
    with pytest.raises(ValueError, match="leaves nothing of a 3×6 map"):
        PosedAttention("R4", 2, 3, 4, crop=2)(torch.rand(1, 2, 3, 6))
    with pytest.raises(ValueError, match="crop must be .*, but got -1"):
        PosedAttention("R4", 2, 3, 4, crop=-1)
    for sides in ((0, 2), (2.0, 3), (True, 1)):
        with pytest.raises(ValueError, match="a rectangle has positive numbers of rows and columns, but got"):
            Rectangle(*sides)


def test_pictures_that_are_padded_more_at_one_end_are_refused():
    for pad in (nn.ZeroPad2d((0, 1, 0, 1)), nn.ReflectionPad2d((1, 1, 2, 2))):
        model = nn.Sequential(pad, nn.Conv2d(1, 1, 3, stride=2))
        with pytest.raises(ValueError, match="cannot be replaced; .*:\n0: a picture that is padded more at one end"):
            replace_convolutions(model, "R4")
        assert replace_convolutions(model, "R4", skip=["0"])[0] is pad
    even = nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(1, 1, 3))
    assert_equivariant(replace_convolutions(even, "R4"), torch.rand(1, 1, 6, 6), gsa.group("R4"))


def test_wide_dilation_warns_of_what_it_costs():
    """625 pixels in place of 9 are 69 times as many; 81, of dilation 4, are not worth a word."""
    with pytest.warns(UserWarning, match="looks at all 25×25 pixels: up to 69 times the products"):
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
        nn.Conv2d(2, 2, 1, stride=(2, 1), padding_mode="circular"),
        nn.Conv2d(2, 2, 1, stride=2, padding_mode="circular"),
        nn.ConvTranspose3d(2, 2, 3),
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


def test_pools_are_replaced_where_there_are_no_convolutions():
    network = gsa.nn.replace_convolutions(nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.Conv2d(1, 2, 1)), "R4").double()
    assert_equivariant(network, torch.rand(2, 1, 8, 8).double(), "R4")
    alone = nn.MaxPool2d(3, 2, 1)
    with pytest.warns(UserWarning, match="MaxPool2d has no convolution"):
        assert gsa.nn.replace_convolutions(alone, "R4") is alone


def test_attention_of_another_group_or_border_is_refused_and_not_passed_over():
    model = replace_convolutions(nn.Sequential(nn.Conv2d(2, 2, 3), nn.Conv2d(2, 2, 3)), "R4")
    before = list(model)
    for group, border in (("R4M", "zeros"), ("R4", "hidden")):
        rule = "1: it is attention in the poses of R4 with border='zeros' already; replace convolutions of the original"
        with pytest.raises(ValueError, match=rule):
            replace_convolutions(model, group, border)
        assert list(model) == before
        assert replace_convolutions(model, group, border, skip=["0", "1"]) is model


def test_what_is_no_module_is_refused():
    with pytest.raises(ValueError, match=r"model must be a torch.nn.Module, .*, but got \[Conv2d"):
        replace_convolutions([nn.Conv2d(2, 2, 3)], "R4")


def test_weights_of_a_convolution_may_be_kept_as_they_are():
    convolution = nn.Conv2d(2, 3, 3)
    layer = replace_convolutions(nn.Conv2d(2, 3, 3), "R4")
    layer.load_state_dict(convolution.state_dict(), assign=True)
    assert all(tensor.is_contiguous() for tensor in layer.state_dict().values())
    x = torch.rand(1, 2, 5, 5)
    assert torch.equal(layer(x), replace_convolutions(convolution, "R4")(x))


def test_weights_of_a_convolution_may_take_the_place_of_none():
    """Of a network that was made on no device. Planted: attention that stands for no convolution."""
    convolution = nn.Conv2d(2, 4, 3, padding=1).double()
    with torch.device("meta"):
        network = replace_convolutions(nn.Sequential(nn.Conv2d(2, 4, 3, padding=1)), "R4")
    network.load_state_dict(nn.Sequential(convolution).state_dict(), assign=True)
    x = torch.rand(2, 2, 6, 6).double()
    made = PosedAttention.of_convolution(convolution, "R4", "zeros")
    torch.testing.assert_close(network(x), made(x), rtol=0, atol=1e-6)  # sharpness is of float32 there
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        PosedAttention("R4", 2, 4, 3, border="zeros").load_state_dict(convolution.state_dict(), strict=False)


def test_filters_that_learn_nothing_are_refused_and_pools_of_other_norms():
    for module in (timm.layers.BlurPool2d(4), nn.LPPool2d(2, 2)):
        with pytest.raises(ValueError, match=f"1: .*{type(module).__name__}"):
            replace_convolutions(nn.Sequential(nn.Conv2d(1, 4, 3), module), "R4")


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
    with pytest.raises(ValueError, match=r"strides, \['0', '1.1'\], or what holds some, but got \['1.7'\]$"):
        replace_convolutions(model, "R4", skip=["1.7"])
    for wrong in ("1.1", ["x"], [""]):
        with pytest.raises(ValueError, match="skip is a list of names"):
            replace_convolutions(model if wrong == "1.1" else nn.Conv2d(3, 4, 3), "R4", skip=wrong)
    shared = nn.Conv2d(4, 4, 3)
    twice = replace_convolutions(nn.Sequential(shared, shared), "R4", skip=["0"])
    assert twice[0] is twice[1] is shared
    for named in (["1.1"], ["1", "1.0"]):  # itself, or what it is in, beside what has nothing to replace
        replaced = replace_convolutions(copy.deepcopy(model), "R4", skip=named)
        assert type(replaced[0]) is PosedAttention and type(replaced[1][1]) is nn.Conv1d


def test_norms_that_keep_the_means_of_convolutions_are_told_of():
    pytest.importorskip("torchvision")
    from torchvision.ops import FrozenBatchNorm2d

    beside = nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 3), FrozenBatchNorm2d(4)), nn.Conv2d(4, 4, 3))
    replace_convolutions(beside, "R4", skip=["0"])  # the norm of a convolution that stays
    apart = {"layer1": nn.Sequential(FrozenBatchNorm2d(4)), "layer10": nn.Sequential(nn.Conv2d(3, 4, 3))}
    replace_convolutions(nn.ModuleDict(apart), "R4")  # whose names begin alike
    pooled = nn.Sequential(nn.Conv2d(3, 4, 3), FrozenBatchNorm2d(4), nn.MaxPool2d(2, 2))
    replace_convolutions(pooled, "R4", skip=["0"])
    for model in (nn.Sequential(nn.Conv2d(3, 4, 3), FrozenBatchNorm2d(4)),
                  nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 3)), FrozenBatchNorm2d(4))):  # fmt: skip
        with pytest.warns(UserWarning, match=r"frozen \(1 and 0 more\).* such as norm_layer=torch.nn.BatchNorm2d"):
            replace_convolutions(model, "R4")


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


@pytest.mark.filterwarnings("ignore:the batch norms of")
def test_behind_norms_that_keep_the_means_of_convolutions_features_grow():
    """What the warning says, of eight layers with statistics of the convolutions; with ones of its own, they do not."""
    pytest.importorskip("torchvision")
    from torchvision.ops import FrozenBatchNorm2d

    def layer(norm):
        return nn.Sequential(norm, nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))

    x = torch.rand(8, 1, 12, 12)
    network = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), *(layer(nn.BatchNorm2d(8, momentum=None)) for _ in range(8)))
    learns = replace_convolutions(copy.deepcopy(network), "R4")
    for net in (network, learns):
        net.train()(x)
        net.eval()
    state = network.state_dict()
    frozen = nn.Sequential(copy.deepcopy(network[0]), *(layer(FrozenBatchNorm2d(8)) for _ in range(8)))
    frozen.load_state_dict(state, strict=False)  # but for the numbers of batches
    torch.testing.assert_close(frozen(x), network(x))
    grown = replace_convolutions(frozen, "R4")(x).std() / network(x).std()
    assert grown > 3 and learns(x).std() / network(x).std() < 2
