import torch

import gsa
from gsa.viz import draw_orbit


def test_a_column_for_each_element_and_a_row_for_each_thing_shown(tmp_path):
    group, network = gsa.group("R4"), gsa.create_model("digits_r4_sa").eval()
    figure = draw_orbit(torch.rand(1, 16, 16), network.lifting, {"logits": network}, group)
    assert len(figure.axes) == group.order * (1 + group.order + 1)
    assert [axis.get_title() for axis in figure.axes[:4]] == ["0°", "90°", "180°", "270°"]
    figure.savefig(tmp_path / "orbit.png")
