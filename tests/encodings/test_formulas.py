"""Kinds of encodings are what their formulas say, entry by entry."""

import math

import pytest
import torch

import gsa
from gsa.encodings import (
    AbsoluteEncoding,
    FourierEncoding,
    FunctionalEncoding,
    Neighbourhood,
    QuadraticEncoding,
    RotaryEncoding,
    encoding,
)
from gsa.models._published import PublishedGroupTerm
from gsa.nn import GroupSelfAttention

pytestmark = pytest.mark.usefixtures("float64")


def test_an_absolute_encoding_is_of_sines_and_cosines_of_rows_and_columns():
    """Channel c: frequency 10⁴^(−4⌊c/4⌋/channels), which is 1 and 1/100 of eight."""
    added = AbsoluteEncoding(gsa.group("R4"), 6).embed(torch.zeros(1, 8, 5, 7))[0]
    rows, columns = torch.meshgrid(torch.arange(5.0), torch.arange(7.0), indexing="ij")
    for channel, (wave, places) in enumerate(
        ((torch.sin, rows), (torch.sin, columns), (torch.cos, rows), (torch.cos, columns))
    ):
        torch.testing.assert_close(added[channel], wave(places))
        torch.testing.assert_close(added[channel + 4], wave(places / 100))


def test_rows_columns_and_poses_share_the_channels_of_a_functional_encoding():
    module = FunctionalEncoding(gsa.group("R4"), 8)
    place = module.spatial(Neighbourhood(3).offsets(5, 5, module.inverse_matrices))[0]
    pose = module.pose(4, 4, place)
    assert (place[:, :1, :2] == place[..., :2]).all() and (place[:1, :, 2:4] == place[..., 2:4]).all()
    assert not place[..., 4:].any() and not pose[..., :4].any() and place[..., :4].all() and pose[..., 4:].all()


def test_rows_and_columns_tell_how_far_and_not_only_which_way():
    module, places = FunctionalEncoding(gsa.group("R4"), 6), torch.tensor([[0.25], [0.5], [1.0]])
    for network in (module.row, module.column):
        assert network(places).std(0).min() > 1e-2
    module.start_without_biases()  # planted: LayerNorm of a multiple of x
    assert module.row(places).std(0).max() < 1e-3


def test_rotary_frequencies_are_a_spiral():
    lengths = RotaryEncoding(gsa.group("R4"), 8).frequencies.norm(dim=1)
    torch.testing.assert_close(lengths, math.pi * torch.tensor([1, 1 / 2, 1 / 4, 1 / 8]))


def test_fourier_features_start_as_large_as_vectors_of_poses():
    module = FourierEncoding(gsa.group("R4"), 256)
    spatial = module.spatial(Neighbourhood(5).offsets(5, 5, module.inverse_matrices))
    assert 0.8 < spatial.std() < 1.2


def test_the_published_pose_index_is_that_of_the_formula():
    """ρ_H(ĥ⁻¹h̃h), in a group where the order of factors matters."""
    group = gsa.group("R4M")
    layer = PublishedGroupTerm(group, 2, 2, 1, 6, form="summed")
    for h in range(group.order):
        for q, m in ((0, 1), (1, 5), (6, 3)):
            relative = group.product[group.product[group.inverse[q], m], h]
            assert torch.equal(layer.pose_seen_by(h)[q, m, -2:], layer.encoding.pose_vectors[relative])


def test_an_encoding_of_another_head_size_is_refused():
    group = gsa.group("R4")
    with pytest.raises(ValueError, match=r"\(R4, 6\), but was made for \(R4, 8\)"):
        encoding(FunctionalEncoding(group, 8), group, 6, Neighbourhood(3))


def test_a_module_of_ones_own_is_not_told_where_its_heads_start():
    group = gsa.group("R4")
    made = QuadraticEncoding(group, 8, 4, Neighbourhood(3))
    offset = made.offset.clone()
    with pytest.raises(ValueError, match="head_starts says .* of a module of your own, call its start_at_centre"):
        GroupSelfAttention(group, 2, 3, 4, 8, 3, made, head_starts="centre")
    assert offset.any() and torch.equal(made.offset, offset)


def test_positions_are_not_rounded_in_features_of_halves():
    exact = AbsoluteEncoding(gsa.group("R4"), 6).embed(torch.zeros(1, 32, 96, 96, dtype=torch.float64))
    found = AbsoluteEncoding(gsa.group("R4"), 6).embed(torch.zeros(1, 32, 96, 96, dtype=torch.bfloat16))
    assert found.dtype == torch.bfloat16 and (found.double() - exact).abs().max() < 0.002
    rows = 10_000**-0.125 * torch.arange(96.0)
    assert (rows.bfloat16().sin().double() - rows.double().sin()).abs().max() > 0.01  # planted


def test_places_are_not_rounded_in_a_network_of_halves():
    made = QuadraticEncoding(gsa.group("R8"), 8, 4, Neighbourhood(15))
    made.offset.data *= 6  # far from the centre, where 2u and |u|² are large
    parameters = {name: p.detach().bfloat16() for name, p in made.named_parameters()}
    for name, p in made.named_parameters():
        p.data.copy_(parameters[name])  # what is lost of these is lost

    def weights(encoding):
        scores = encoding.position_scores(Neighbourhood(15), 20, 20).float()
        return scores.flatten(2).softmax(-1)

    exact, found = weights(made), weights(made.bfloat16())
    assert (found - exact).abs().max() < 1e-3
    made.places = made.places.bfloat16()
    assert (weights(made) - exact).abs().max() > 0.01  # planted


def test_heads_start_nearest_first_and_each_at_the_pose_after_the_last():
    encoding = QuadraticEncoding("R4", 8, 5, Neighbourhood(5))
    assert encoding.offset.norm(dim=1).tolist() == pytest.approx([0, 1, 1, 1, 1])
    torch.testing.assert_close(encoding.preference[:4], 2 * encoding.pose_vectors)
