"""A picture and what a network shows of it, in a column for each element."""

import pytest
import torch

import gsa
from gsa.viz import draw_orbit


def test_a_column_for_each_element_and_a_row_for_each_thing_shown(tmp_path):
    group, network = gsa.group("R4"), gsa.create_model("digits_r4_sa").eval()
    figure = draw_orbit(torch.rand(1, 16, 16), network.lifting, {"logits": network}, group)
    assert len(figure.axes) == group.order * (1 + group.order + 1) + 1  # the scale
    assert [axis.get_title() for axis in figure.axes[:4]] == ["0°", "90°", "180°", "270°"]
    figure.savefig(tmp_path / "orbit.png")


def test_a_map_without_poses_is_drawn_as_of_one():
    figure = draw_orbit(torch.rand(1, 8, 8), torch.nn.Conv2d(1, 2, 3), {}, "R4")
    assert len(figure.axes) == 4 * 2 + 1 and figure.axes[4].get_ylabel() == "feature"


def test_zero_is_white_and_values_of_one_sign_take_the_whole_scale():
    """Planted: a channel that is dead, one of both signs, and one that is positive throughout."""
    found = {}
    for name, (weight, bias) in {"dead": (0, 0), "both": (1, -0.5), "positive": (1, 1)}.items():
        features = torch.nn.Conv2d(1, 1, 1)
        torch.nn.init.constant_(features.weight, weight)
        torch.nn.init.constant_(features.bias, bias)
        found[name] = draw_orbit(torch.rand(1, 8, 8), features, {}, "R4").axes[4].images[0]
    assert found["dead"].get_clim() == (-1, 1) and found["both"].cmap.name == found["dead"].cmap.name == "RdBu_r"
    assert sum(found["both"].get_clim()) == 0 and found["positive"].get_clim()[0] >= 1
    assert found["positive"].cmap.name == "viridis"


def test_a_figure_is_a_picture_in_a_notebook():
    assert draw_orbit(torch.rand(1, 8, 8), torch.nn.Conv2d(1, 2, 3), {}, "R4")._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("wrong, message", [
    ({"image": torch.rand(1, 1, 8, 8)}, r"one picture, \[C, H, W\], but got \[1, 1, 8, 8\]: images\[0\]"),
    ({"channel": 2}, "channel must be from 0 to 1, but got 2"),
    ({"features": torch.nn.Flatten()}, r"features must be \[B, C, poses, H, W\], .* but got \[1, 64\]"),
    ({"group": "Q4"}, "a group is named"),
])  # fmt: skip
def test_what_is_no_orbit_is_refused(wrong, message):
    given = {"image": torch.rand(1, 8, 8), "features": torch.nn.Conv2d(1, 2, 3), "networks": {}, "group": "R4"}
    with pytest.raises(ValueError, match=message):
        draw_orbit(**given | wrong)
