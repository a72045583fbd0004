"""The residual block."""

import pytest
import torch

import gsa
from gsa.nn import AttentionBlock, AttentionOptions, PlainBlock
from gsa.symmetry import assert_equivariant


@pytest.mark.parametrize("kind", ["channel", "sample", "batch"])
@pytest.mark.parametrize("form", ["regular", "summed"])
@pytest.mark.parametrize("group", ["Z2M", "R4", "R8", "R4M"])
def test_blocks_commute_with_the_group(group, form, kind, float64):
    group = gsa.group(group)
    options = AttentionOptions(num_heads=2, head_dim=6, neighbourhood=3)
    block = AttentionBlock(group, 3, 4, options, form, crop=1, norm=kind, dropout=0.1)
    x = torch.randn(2, 3, group.order, 6, 6)
    assert block(x).shape == (2, 4, group.order, 4, 4)
    assert_equivariant(block, x, group)


def test_a_crop_that_leaves_nothing_is_refused():
    with pytest.raises(ValueError, match="cropping 3 pixels from every border leaves nothing of a 6×8 map"):
        gsa.nn.crop_border(torch.rand(1, 1, 6, 8), 3)


def test_negative_crops_are_refused():
    with pytest.raises(ValueError, match="must not be negative, but got -1"):
        gsa.nn.crop_border(torch.rand(1, 1, 6, 6), -1)
    for crop in (-1, 1.5, True):
        with pytest.raises(ValueError, match=f"crop must be a number of pixels, 0 or more, but got {crop}"):
            AttentionBlock("R4", 2, 2, crop=crop)
        with pytest.raises(ValueError, match=f"crop must be a number of pixels, 0 or more, but got {crop}"):
            gsa.nn.PosedAttention("R4", 2, 2, crop=crop)


def test_dropout_of_a_plain_block_acts_in_training():
    block, x = PlainBlock("R4", 2, 3, dropout=0.5), torch.rand(1, 2, 4, 5, 5)
    assert 0.2 < (block(x) == 0).float().mean() < 0.8 and not (block.eval()(x) == 0).any()
