"""Sizes and arguments that networks refuse."""

import pytest
import torch

import gsa


@pytest.mark.parametrize("name, side", [("rotmnist_r4_cnn", 29), ("cifar10_z2_cnn", 30), ("pcam_r4_cnn", 97)])
def test_rivals_refuse_sizes_that_lose_exactness(name, side):
    network = gsa.create_model(name).eval()
    with pytest.raises(ValueError, match="nearest sides that stay exact"):
        network(torch.rand(1, 1 if "rotmnist" in name else 3, side, side))


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("rotmnist_r4_cnn", {"attention": "half"}, "attention must be 'none' or 'full', but got 'half'"),
        ("rotmnist_alpha_r4_cnn", {"bias": True}, "attentive convolutions have no bias"),
        ("pcam_r4_cnn", {"attention": "full"}, "attention must be 'none' or 'feature', but got 'full'"),
        ("rotmnist_r4_cnn", {"group": "R8"}, "but got R8"),
        (
            "rotmnist_gsa",
            {"neighbourhood": 7},
            r"neighbourhood=7 would change nothing, as neighbourhoods=\[3, 3, 5, 5, 5\]",
        ),
        ("cifar10_gsa", {"neighbourhood": 5, "neighbourhoods": [3, 3, 3, 5, 5]}, "would change nothing"),
        (
            "digits_r4_sa",
            {"published": True, "pixels": "max"},
            "with published=True have pixels='sum', but got 'max'",
        ),
        ("digits_r4_sa", {"published": True, "pools": (3, 0, 0)}, r"2×2 at stride 2, but got pools=\(3, 0, 0\)"),
        ("pcam_r4_sa", {"published": True, "stem_pool": 3}, "2×2 at stride 2, but got stem_pool=3"),
        ("digits_r4_sa", {"crops": []}, r"crops needs one entry a block \(\d\), but got 0"),
        ("rotmnist_gsa", {"num_heads": 60}, "or set content_heads=None as well"),
        ("rotmnist_r4_cnn", {"channels": 2.5}, "channels must be a positive integer, but got 2.5"),
        (
            "rotmnist_r4_cnn",
            {"num_classes": 1.5},
            "num_classes must be a positive integer, or 0 for no head, but got 1.5",
        ),
        ("rotmnist_r4_cnn", {"in_channels": True}, "in_channels must be a positive integer, but got True"),
        ("rotmnist_alpha_r4_cnn", {"attention_reduction": 0}, "attention_reduction must be a positive integer"),
        ("rotmnist_alpha_r4_cnn", {"attention_reduction": -1}, "attention_reduction must be a positive integer"),
        ("cifar10_z2_cnn", {"channels": -3}, "channels must be a positive integer, but got -3"),
        (
            "cifar10_z2_cnn",
            {"num_classes": 2.5},
            "num_classes must be a positive integer, or 0 for no head, but got 2.5",
        ),
        ("pcam_r4_cnn", {"growth": 2.5}, "growth must be a positive integer, but got 2.5"),
        ("pcam_alpha_f_r4_cnn", {"attention_hidden": 1.5}, "attention_hidden must be a positive integer, but got 1.5"),
        ("rotmnist_vit", {"patch_size": 0}, "patch_size must be a positive integer, but got 0"),
        ("rotmnist_vit", {"image_size": -28}, "image_size must be a positive integer, but got -28"),
        ("rotmnist_vit", {"layers": -1}, "layers must be a positive integer, but got -1"),
        ("rotmnist_vit", {"num_heads": 0}, "num_heads must be a positive integer, but got 0"),
        ("rotmnist_vit", {"mlp_channels": 0}, "mlp_channels must be a positive integer, but got 0"),
        ("rotmnist_vit", {"num_classes": -1}, "num_classes must be a positive integer, or 0 for no head, but got -1"),
        ("rotmnist_vit", {"patch_size": 5}, "divisible by patch_size, but got 28 and 5"),
        ("rotmnist_vit", {"num_heads": 5}, "divisible by num_heads, but got 32 and 5"),
    ],
)
def test_rivals_refuse_bad_arguments(name, options, message):
    with pytest.raises(ValueError, match=message):
        gsa.create_model(name, **options)


def test_sizes_that_lose_exactness_are_refused_with_the_nearest_that_do_not():
    network = gsa.create_model("rotmnist_r4_sa")
    with pytest.raises(
        ValueError, match="got 28×29 images, and 29 is not such a side; nearest ones that are: 28 or 30"
    ):
        network(torch.rand(1, 1, 28, 29))
    assert gsa.create_model("rotmnist_z2_sa")(torch.rand(1, 1, 28, 29)).shape == (1, 10)  # nothing to lose
    with pytest.warns(UserWarning, match="stay exact"):
        gsa.create_model("digits_r4_sa", on_inexact="warn")(torch.rand(2, 1, 17, 17))
    assert network.side_after(28) == 4 and network.side_after(29) is None


def test_wider_windows_of_pools_make_every_size_exact(float64):
    network = gsa.create_model("rotmnist_r4_sa", on_inexact="widen").eval()
    assert network.side_after(29) == network.side_after(28) == 4
    for height, width in ((29, 29), (31, 28)):
        x = torch.randn(1, 1, height, width)
        torch.testing.assert_close(network(x.rot90(1, (-2, -1))), network(x))
    with pytest.raises(ValueError, match="leave nothing of a side of 16: got 28×16 images; the smallest side is 22"):
        network(torch.rand(1, 1, 28, 16))


def test_what_a_list_makes_void_may_be_said_with_another_list_or_none():
    for keywords in (
        {"neighbourhood": 7, "neighbourhoods": None},
        {"neighbourhood": 7, "neighbourhoods": [3] * 5},
        {"num_heads": 18, "positional_heads": 18},
    ):
        gsa.create_model("rotmnist_gsa", **keywords)
