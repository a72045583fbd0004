"""The arithmetic that benchmarks hold against the clock is counted as it is needed."""

import sys
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import gsa

sys.path.insert(0, str(Path(gsa.__file__).parent.parent / "benchmarks"))
from _flop import flop


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
