"""Pictures nobody planned for: a defined result, or an error that says why."""

import math

import numpy
import pytest
import torch

import gsa

R4 = gsa.group("R4")


@pytest.mark.parametrize("form", ["regular", "summed"])
@pytest.mark.parametrize("height, width", [(1, 1), (2, 3), (3, 4)])
def test_layers_take_pictures_smaller_than_the_neighbourhood(float64, form, height, width):
    lifting = gsa.nn.LiftingSelfAttention(R4, 1, 4, num_heads=1, head_dim=3, neighbourhood=7)
    layer = gsa.nn.GroupSelfAttention(R4, 4, 4, num_heads=1, head_dim=3, neighbourhood=7, form=form)
    x = torch.rand(2, 1, height, width)
    report = gsa.symmetry.assert_equivariant(lambda image: layer(lifting(image)), x, R4)
    assert all(math.isfinite(error) for error in report.exact.values())


def test_oblong_pictures_turn_exactly_by_quarter_turns(float64):
    network = gsa.create_model("digits_r4_sa").eval()
    gsa.symmetry.assert_equivariant(network, torch.rand(2, 1, 12, 16), R4)


def test_a_picture_too_small_for_the_network_is_refused():
    with pytest.raises(ValueError, match="got 2×2 images, and 2 is not such a side; nearest ones that are: 4"):
        gsa.create_model("digits_r4_sa")(torch.rand(1, 1, 2, 2))
    with pytest.raises(ValueError, match="got 12×13 images"):
        gsa.create_model("digits_r4_sa")(torch.rand(1, 1, 12, 13))


@pytest.mark.parametrize("name", ["digits_r4_sa", "digits_z2_sa"])
def test_an_empty_batch_has_no_logits(name):
    network = gsa.create_model(name).eval()
    assert network(torch.rand(0, 1, 12, 12)).shape == (0, 10)


@pytest.mark.parametrize("norm", ["sample", "channel", "batch"])
def test_a_batch_of_one_trains(norm):
    network = gsa.create_model("digits_r4_sa", norm=norm)
    network(torch.rand(1, 1, 12, 12)).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters())


@pytest.mark.parametrize("norm", ["sample", "channel", "batch"])
@pytest.mark.parametrize("form", ["regular", "summed"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_picture_that_is_not_a_number_does_not_spread(norm, form, value):
    network = gsa.create_model("digits_r4_sa", norm=norm, form=form).eval()
    images = torch.rand(3, 1, 12, 12)
    expected = network(images)
    images[1, 0, 5, 5] = value
    logits = network(images)
    assert not torch.isfinite(logits[1]).all()
    torch.testing.assert_close(logits[[0, 2]], expected[[0, 2]])


def test_sizes_may_be_integers_of_numpy(tmp_path):
    counted = numpy.array([0, 2, 1]).max() + 1
    network = gsa.create_model("digits_gsa", pretrained=True, num_classes=counted, in_channels=numpy.int64(1))
    assert network(torch.rand(1, 1, 8 + 4, 8 + 4)).shape == (1, 3)
    digits = gsa.data.DigitsDataModule()
    digits.setup()
    digits.num_classes = counted
    assert type(digits.picture_format()["num_classes"]) is int
    torch.save(network.pictures.plain(), tmp_path / "pictures")  # as checkpoints hold them
    assert torch.load(tmp_path / "pictures", weights_only=True)["num_classes"] == 3
    backbone = gsa.create_model("digits_gsa", features_only=True, out_indices=list(numpy.arange(2)))
    assert len(backbone(torch.rand(1, 1, 12, 12))) == 2
    with pytest.raises(ValueError, match="num_classes must be a positive integer"):
        gsa.create_model("digits_gsa", num_classes=numpy.float64(3))


def test_what_torch_fx_traces_with_is_told_from_an_array():
    with pytest.raises(ValueError, match=r"the network cannot be traced by torch.fx: .* features_only=True"):
        torch.fx.symbolic_trace(gsa.create_model("digits_gsa"))
    with pytest.raises(ValueError, match="needs to be a torch.Tensor, but got ndarray"):
        gsa.symmetry.assert_equivariant(torch.nn.Identity(), numpy.zeros((1, 1, 4, 4)), "R4")
