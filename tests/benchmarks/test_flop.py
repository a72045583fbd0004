"""The arithmetic that benchmarks hold against the clock is counted as it is needed."""

import pytest
import torch
from _flop import flop
from torch.utils.flop_counter import FlopCounterMode

import gsa


@pytest.mark.parametrize("parts", [1, 2, 8])
def test_both_gradients_of_a_convolution_cost_what_it_costs_itself(parts):
    x, filters = torch.rand(2, 8, 5, 5, requires_grad=True), torch.rand(8, 8 // parts, 3, 3, requires_grad=True)
    itself = 2 * 2 * 8 * 5 * 5 * 9 * 8 // parts
    for of, times in (((x, filters), 3), ((filters,), 2), ((x,), 2)):
        taken = [t if any(t is one for one in of) else t.detach() for t in (x, filters)]
        found = flop(lambda taken=taken: torch.conv2d(*taken, padding=1, groups=parts).sum().backward())
        assert found == times * itself


@pytest.mark.parametrize("side, crop, pairs", [(1, 0, 6 * 7), (3, 1, 4 * 5 * 9), (5, 1, 18 * 23), (3, 0, 16 * 19)])
@pytest.mark.parametrize("form, forward, backward", [("regular", 36, 92), ("summed", 64, 176)])
def test_torch_counts_attention_by_our_formulas(form, forward, backward, side, crop, pairs):
    """Planted: its own counter, which knows no attention of ours."""
    layer = gsa.nn.GroupSelfAttention("R4", 2, 2, num_heads=3, head_dim=5, neighbourhood=side, form=form, crop=crop)
    x = torch.rand(2, 2, 4, 6, 7)
    with FlopCounterMode(display=False) as without:
        layer(x).sum().backward()
    with FlopCounterMode(display=False, custom_mapping=gsa.ops.flop_formulas()) as counter:
        layer(x).sum().backward()
    assert counter.get_total_flops() - without.get_total_flops() == 2 * 5 * 2 * 3 * pairs * (forward + backward)


def forward(name, **options):
    """FLOP of a picture, counted where nothing is computed."""
    with torch.device("meta"):
        network, x = gsa.create_model(name, **options), torch.rand(1, 1, 28, 28)
    with torch.no_grad(), FlopCounterMode(display=False, custom_mapping=gsa.ops.flop_formulas()) as counter:
        network(x)
    return counter.get_total_flops()


def test_what_attention_costs_beside_convolution():
    """Of regular form, and summed; more with its window and its poses; and what the flagship takes of it."""
    convolution = forward("rotmnist_r4_cnn")
    found = {
        "summed": forward("rotmnist_r4_sa", form="summed"),
        "11": forward("rotmnist_r4_sa", neighbourhood=11),
        "global": forward("rotmnist_r4_sa", neighbourhood=None),
        **{poses: forward(f"rotmnist_r{poses}_sa") for poses in (4, 8, 16)},
        "ours": forward("rotmnist_gsa"),
    }
    times = {name: flops / convolution for name, flops in found.items()}
    expected = {"summed": 6.6, "11": 14.4, "global": 90, 4: 4.5, 8: 13.7, 16: 47, "ours": 2.2}
    assert times == pytest.approx(expected, rel=0.02)


def test_a_network_is_counted_on_meta_as_it_is_elsewhere():
    network, x = gsa.create_model("digits_r4_sa"), torch.rand(1, 1, 12, 12)
    with FlopCounterMode(display=False, custom_mapping=gsa.ops.flop_formulas()) as counter:
        network(x).sum().backward()
    with FlopCounterMode(display=False, custom_mapping=gsa.ops.flop_formulas()) as on_meta:
        network.to("meta")(x.to("meta")).sum().backward()
    assert on_meta.get_total_flops() == counter.get_total_flops()
