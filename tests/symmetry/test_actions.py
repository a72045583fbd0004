"""Shifts, and orders of tokens and of features: what keeps them in PyTorch's and torchvision's networks, and where."""

import pytest
import timm
import torch
from torch import nn
from torchvision.models import SwinTransformer, VisionTransformer, resnet18

import gsa
from gsa.symmetry import (
    FeaturePermutations,
    GroupAction,
    LayerReport,
    Shifts,
    TokenPermutations,
    equivariance_error,
    layer_errors,
    translation_error,
)

pytestmark = pytest.mark.usefixtures("float64")


def perturbed_vit():
    """Its class token and head start at zero, with which all that comes after would be constant."""
    torch.manual_seed(0)
    vit = VisionTransformer(16, 4, 2, 2, 8, 16, num_classes=3).eval()
    for weight in vit.parameters():
        weight.data += 0.1 * torch.randn_like(weight)
    return vit


def encoder(layers=1, batch_first=True):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval()


class Causal(nn.Module):
    """Tokens see those before them only."""

    def __init__(self):
        super().__init__()
        self.encoder = encoder()

    def forward(self, tokens):
        return self.encoder(tokens, mask=nn.Transformer.generate_square_subsequent_mask(tokens.shape[1]))


def test_shifts_by_whole_patches_are_broken_where_a_vit_adds_its_positions():
    shifts = Shifts((4, 0), (0, 8), (2, 0))
    vit, x = perturbed_vit(), torch.rand(3, 3, 16, 16)
    report = LayerReport.of(vit, x, shifts)
    assert report.worst("conv_proj") < 1e-14 and list(report.errors["conv_proj"]) == [0, 1]  # 2 pixels are half a patch
    layer, before, after = report.first_broken
    assert layer == "encoder.dropout" and before < 1e-14 and after > 1e-2  # what first returns the sum
    assert report.broken == [0, 1, 2] and "–" in str(report)
    nn.init.zeros_(vit.encoder.pos_embedding)
    assert LayerReport.of(vit, x, shifts).broken == [2]


def test_shifts_of_a_swin_are_broken_by_its_windows_and_by_the_mask_of_those_that_are_shifted():
    torch.manual_seed(0)
    swin = SwinTransformer([4, 4], 12, [2, 2], [2, 2], [4, 4], num_classes=3).eval()  # windows of 16 pixels
    x = torch.rand(2, 3, 64, 64)
    assert LayerReport.of(swin, x, Shifts((16, 0), (0, 16))).first_broken[0] == "features.1.1.attn"
    assert LayerReport.of(swin, x, Shifts((4, 0))).first_broken[0] == "features.1.0.attn"
    assert LayerReport.of(swin, x, "R4").first_broken[0] == "features.0.0"


def test_a_resnet_breaks_shifts_at_its_border_only_until_that_is_in_reach():
    torch.manual_seed(0)
    resnet, x = resnet18().eval(), torch.rand(2, 3, 64, 64)
    assert LayerReport.of(resnet, x, Shifts((32, 0))).first_broken[0] == "conv1"
    inside = LayerReport.of(resnet, x, Shifts((32, 0), margin=4))
    assert inside.worst("relu") == 0 and inside.first_broken[0] == "maxpool"  # conv1 reaches 3 pixels
    assert LayerReport.of(resnet, x, Shifts((32, 0), margin=8)).first_broken[0] == "layer1.0.conv1"


def test_a_margin_hides_the_border_and_nothing_else():
    x = torch.rand(2, 3, 12, 10)
    convolution = nn.Conv2d(3, 4, 3, padding=1)
    for margin, broken in ((0, True), (1, False)):
        assert bool(LayerReport.of(convolution, x, Shifts((5, -3), margin=margin)).broken) == broken
    planted = nn.Sequential(convolution, nn.Linear(10, 10))  # along a row
    assert LayerReport.of(planted, x, Shifts((0, 2), margin=1)).first_broken[0] == "1"


def test_channels_may_come_last_and_pictures_need_not_be_square():
    x = torch.rand(2, 3, 8, 16)
    patches = nn.Conv2d(3, 5, 4, stride=4)
    last = nn.Sequential(patches, Permuted(), nn.LayerNorm(5))
    tokens = nn.Sequential(patches, nn.Flatten(2), Transposed())
    for network in (last, tokens):
        assert LayerReport.of(network, x, Shifts((4, 8))).broken == []
    assert list(layer_errors(last, x, Shifts((4, 8)))) == ["0", "1", "2", "Sequential"]


@pytest.mark.parametrize("channels", [3, 4, 5])
def test_maps_whose_border_is_cut_are_no_channels_that_come_last(channels):
    """6×10 of 8×12: of 4 channels, [B, 4, 6, 10] might be read as [B, h, w, C] with 4 : 6 = 8 : 12."""
    x = torch.rand(2, 1, 8, 12)
    layer = gsa.nn.PosedAttention("R4M", 1, channels, 3, crop=1)
    assert max(equivariance_error(layer, x, "R4M").values()) < 1e-10
    last = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(1, channels, 1), Permuted())  # 4×6 cells, channels last
    assert max(equivariance_error(last, x, "R4M").values()) < 1e-14
    planted = nn.Sequential(nn.Conv2d(1, channels, 2, stride=2), Permuted())
    assert max(equivariance_error(planted, x, "R4M").values()) > 1e-2


def test_maps_of_every_third_pixel_are_no_channels_that_come_last():
    """3×5 of 12×18 by a filter of 4×4: [B, 2, 3, 5] might be read as [B, h, w, C] with 2 : 3 = 12 : 18."""
    maps = torch.rand(1, 2, 3, 5)
    assert torch.equal(GroupAction("R2").moved(maps, 1, torch.Size((1, 1, 12, 18))), maps.rot90(2, (-2, -1)))


@pytest.mark.parametrize("sides", [(64, 64), (48, 48), (8, 16)])
@pytest.mark.parametrize("symmetry", ["R4", Shifts((2, 8), margin=1)])
def test_maps_without_an_axis_of_channels_are_no_tokens(sides, symmetry):
    """Labels of the pixels, and a binary network's answers: 64 rows might be read as 8×8 tokens of 64 channels."""
    x = torch.rand(2, 1, *sides)
    network = gsa.nn.PosedAttention("R4", 1, 4, 3, border="zeros", bias=False)
    for head in (lambda maps: maps.argmax(1), lambda maps: maps[:, 0]):
        assert max(equivariance_error(lambda x, head=head: head(network(x)), x, symmetry).values()) < 1e-14
        planted = equivariance_error(lambda x, head=head: head(network(x)).flip(1), x, symmetry)
        assert max(planted.values()) > 1e-2


def test_windows_are_no_tokens_of_the_picture():
    network, x = nn.Sequential(Windows(), nn.GELU(), Back()), torch.rand(4, 3, 8, 8)
    for symmetry in ("R4", Shifts((4, 0))):
        errors = layer_errors(network, x, symmetry)
        assert list(errors) == ["2", "Sequential"] and max(errors["2"].values()) == 0


class Windows(nn.Module):
    """[B, C, 8, 8] → tokens of its quarters, [4 B, 16, C]."""

    def forward(self, x):
        return x.unfold(2, 4, 4).unfold(3, 4, 4).movedim(1, -1).flatten(0, 2).flatten(1, 2)


class Back(nn.Module):
    def forward(self, x):
        maps = x.unflatten(0, (-1, 2, 2)).unflatten(3, (4, 4))  # B, 2, 2, 4, 4, C
        return maps.transpose(2, 3).flatten(3, 4).flatten(1, 2).movedim(-1, 1)


class Permuted(nn.Module):
    def forward(self, x):
        return x.permute(0, 2, 3, 1)


class Transposed(nn.Module):
    def forward(self, x):
        return x.mT


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_transformer_commutes_with_the_order_of_its_tokens(batch_first):
    orders = TokenPermutations(torch.randperm(5), [4, 3, 2, 1, 0], axis=int(batch_first))
    x = torch.randn(2, 5, 8) if batch_first else torch.randn(5, 2, 8)
    report = LayerReport.of(encoder(2, batch_first), x, orders)
    assert report.broken == [] and report.worst("layers.0.self_attn") < 1e-14 and "4 3 2 1 0" in str(report)


def test_a_causal_mask_breaks_the_order_of_tokens():
    report = LayerReport.of(Causal(), torch.randn(2, 6, 8), TokenPermutations.random(6))
    assert report.first_broken[0] == "encoder.layers.0.self_attn" and report.broken == [0, 1]


def test_norms_and_pointwise_maps_commute_with_the_order_of_features_and_linear_maps_do_not():
    orders = FeaturePermutations.random(8)
    pointwise = nn.Sequential(nn.LayerNorm(8, elementwise_affine=False), nn.GELU())
    for x in (torch.randn(4, 8), torch.randn(2, 3, 8)):
        assert LayerReport.of(pointwise, x, orders).broken == []
        planted = nn.Sequential(pointwise, nn.Linear(8, 8))
        assert LayerReport.of(planted, x, orders).first_broken[0] == "1"


@pytest.mark.parametrize("make, message", [
    (lambda: Shifts(), r"expected shifts \(down, right\)"),
    (lambda: Shifts((1, 2, 3)), r"whole pixels \(down, right\), such as .* but got \(1, 2, 3\)"),
    (lambda: Shifts((2, 2.5)), r"whole pixels .* but got \(2, 2.5\)"),
    (lambda: translation_error(torch.sin, torch.rand(1, 1, 8, 8), 1.5, margin=2), "whole pixels .* but got 1.5"),
    (lambda: translation_error(torch.sin, torch.rand(1, 1, 8, 8), "2", margin=2), "whole pixels .* but got '2'"),
    (lambda: Shifts((1, 0), margin=-1), "margin must be at least 0"),
    (lambda: Shifts((1, 0), margin=4).act(torch.rand(1, 1, 8, 8), 0), "leaves nothing of a 8×8 picture"),
    (lambda: equivariance_error(nn.Identity(), torch.rand(1, 1, 8, 8), Shifts((1, 0), margin=4)), "leaves nothing"),
    (lambda: Shifts((1, 0)).act(torch.rand(8, 8), 0), "shifts move pictures"),
    (lambda: TokenPermutations(), "at least one order"),
    (lambda: TokenPermutations([0, 0, 1]), "each of 0 to n − 1 once"),
    (lambda: TokenPermutations([0.0, 1.0]), "each of 0 to n − 1 once"),
    (lambda: TokenPermutations([True, False]), "each of 0 to n − 1 once"),
    (lambda: TokenPermutations([[1, 0], [0, 1]]), "one list that holds each"),
    (lambda: TokenPermutations([1, 0], axis=2), "axis 1, or on axis 0"),
    (lambda: TokenPermutations([1, 0], [0, 1, 2]), "orders of one length"),
    (lambda: TokenPermutations([1, 0]).act(torch.rand(2, 3, 4), 0), "orders are of 2 tokens"),
    (lambda: FeaturePermutations([1, 0]).act(torch.rand(2, 2, 2, 2), 0), "features are the last axis"),
    (lambda: layer_errors(nn.Conv2d(1, 1, 4, stride=4), torch.rand(1, 1, 8, 8), Shifts((4, 0), (2, 0))), "can move"),
])  # fmt: skip
def test_what_is_no_symmetry_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_timm_networks_are_looked_into():
    torch.manual_seed(0)
    vit = timm.create_model("vit_tiny_patch16_224", img_size=64, depth=1, num_classes=3).eval()
    for weight in vit.parameters():
        weight.data += 0.1 * torch.randn_like(weight)
    layer, before, _ = LayerReport.of(vit, torch.rand(2, 3, 64, 64), Shifts((16, 0))).first_broken
    assert layer == "pos_drop" and before < 1e-12


def test_a_map_is_left_out_where_a_shift_is_none_of_its_own_cells():
    maps, pictures = torch.rand(1, 5, 4, 4), torch.Size((1, 3, 16, 16))
    shifts = Shifts((4, 8), (2, 0), (0, 2))
    assert torch.equal(shifts.moved(maps, 0, pictures), maps.roll((1, 2), (-2, -1)))
    assert shifts.moved(maps, 1, pictures) is None and shifts.moved(maps, 2, pictures) is None
    assert Shifts(4).shifts == [(4, 4)]


def test_a_margin_covers_every_cell_that_it_touches():
    shifts, pictures = Shifts((4, 0), margin=5), torch.Size((1, 3, 32, 32))
    inside = torch.zeros(8, 8)
    inside[3:6, 2:6] = 1  # two cells of four pixels at every border, in either picture
    assert torch.equal(shifts.seen(torch.ones(1, 1, 8, 8), 0, pictures)[0, 0], inside)
    assert Shifts((4, 0), margin=5).seen(torch.ones(1, 1, 4, 4), 0, torch.Size((1, 3, 16, 16))) is None


def test_the_seed_decides_on_random_orders():
    first, again, other = (TokenPermutations.random(20, seed=seed) for seed in (0, 0, 1))
    assert first.orders[0].equal(again.orders[0]) and not first.orders[0].equal(other.orders[0])


def test_tokens_behind_one_of_a_class_are_permuted_and_it_is_not():
    tokens = torch.rand(2, 4, 3)
    moved = TokenPermutations([2, 0, 1]).moved(tokens, 0, torch.Size([2, 3, 5]))
    assert torch.equal(moved, tokens[:, [0, 3, 1, 2]])
    second = TokenPermutations([2, 0, 1], axis=0).moved(tokens.transpose(0, 1), 0, torch.Size([3, 2, 5]))
    assert torch.equal(second, moved.transpose(0, 1))
