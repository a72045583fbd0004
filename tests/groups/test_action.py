"""Elements move pictures and poses where the formula says, on the grid exactly."""

import itertools

import pytest
import torch

import gsa
from gsa.groups._action import act_on_plane


def test_a_quarter_turn_is_counter_clockwise_and_the_mirror_flips_left_and_right():
    group, x = gsa.group("R4M"), torch.rand(2, 3, 5, 7)
    assert torch.equal(group.act(x, 1), torch.rot90(x, 1, (-2, -1)))
    assert torch.equal(group.act(x, 4), x.flip(-1))


@pytest.mark.parametrize("name", ["Z2M", "R4", "R4M", "R8M"])
@pytest.mark.parametrize("height, width", [(6, 6), (5, 5), (4, 7)])
def test_the_action_is_a_homomorphism_and_exact_on_the_grid(name, height, width):
    group = gsa.group(name)
    image, feature = torch.rand(1, 2, height, width), torch.rand(1, 2, group.order, height, width)
    for x, (g, h) in itertools.product((image, feature), itertools.product(group.grid_elements, repeat=2)):
        assert torch.equal(group.act(group.act(x, h), g), group.act(x, group.product[g, h]))
    assert torch.equal(group.act(feature, 0), feature)


def test_quarter_turns_of_cosines_are_on_the_grid():
    """What a group of one's own has that writes its matrices with cos and sin: 6e-17 in place of 0."""
    turn = torch.tensor(torch.pi / 2, dtype=torch.float64)
    matrix = torch.stack((turn.cos(), -turn.sin(), turn.sin(), turn.cos())).view(2, 2)
    assert matrix[0, 0] != 0
    x = torch.rand(1, 4, 6)
    assert torch.equal(act_on_plane(x, matrix), torch.rot90(x, 1, (-2, -1)))


def test_the_action_moves_values_where_the_formula_says():
    """(L_g f)(i, h) = f(g⁻¹i, g⁻¹h), read off pixel by pixel."""
    group, size = gsa.group("R4M"), 5
    f = torch.rand(1, 1, group.order, size, size)
    centre = size // 2
    for g in range(group.order):
        moved = group.act(f, g)
        for row, column, h in itertools.product(range(size), range(size), range(group.order)):
            i = torch.tensor([column - centre, centre - row], dtype=torch.float64)
            x, y = (group.matrices[group.inverse[g]] @ i).round().long().tolist()
            source = f[0, 0, group.product[group.inverse[g], h], centre - y, centre + x]
            assert moved[0, 0, h, row, column] == source


def test_quarter_turns_swap_the_sides():
    assert gsa.group("R4").act(torch.rand(1, 1, 4, 7), 1).shape == (1, 1, 7, 4)
    assert gsa.group("R4").act(torch.rand(1, 1, 4, 4, 7), 3).shape == (1, 1, 4, 7, 4)


def test_sampling_agrees_with_the_permutation_where_both_apply():
    x = torch.rand(1, 2, 6, 6, dtype=torch.float64)
    for matrix in gsa.group("R4M").matrices:
        expected = gsa.groups.act_on_plane(x, matrix)
        torch.testing.assert_close(gsa.groups.sample_bilinearly(x, matrix[None]), expected, rtol=0, atol=1e-12)


def test_sampled_turns_keep_direction_and_smooth_pictures():
    """A blob on the right goes up by 45° counter-clockwise; a turn and its inverse nearly restore it."""
    rows, columns = torch.meshgrid(torch.arange(33.0), torch.arange(33.0), indexing="ij")
    blob = torch.exp(-((rows - 16) ** 2 + (columns - 24) ** 2) / 18)[None, None]
    group = gsa.group("R8")
    turned = group.act(blob, 1)
    peak = divmod(turned.argmax().item(), 33)
    assert abs(peak[0] - (16 - 8 / 2**0.5)) <= 1 and abs(peak[1] - (16 + 8 / 2**0.5)) <= 1
    assert (group.act(turned, 7) - blob).norm() / blob.norm() < 0.1


@pytest.mark.parametrize("shape", [(4,), (3, 4, 4), (1, 2, 3, 4, 4), (1, 2, 4, 1, 4, 4)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"R4 acts on images .* or on features .* but got the shape"):
        gsa.group("R4").act(torch.rand(shape), 1)


@pytest.mark.parametrize("element", [-1, 4])
def test_unknown_elements_are_refused(element):
    with pytest.raises(ValueError, match="elements 0 to 3"):
        gsa.group("R4").act(torch.rand(1, 1, 4, 4), element)


def test_half_precision_is_sampled_where_whole_precision_is():
    group, x = gsa.group("R8"), torch.rand(1, 1, 33, 33)
    turned = group.act(x.bfloat16(), 1)
    assert turned.dtype == torch.bfloat16
    assert (turned.float() - group.act(x, 1)).norm() < 0.004 * x.norm()  # 0.02 with the places in bfloat16
    with pytest.raises((ValueError, RuntimeError)):
        group.act((255 * x).to(torch.uint8), 1)  # numbers between whole ones would be lost


def test_oblong_pictures_are_not_distorted():
    """A blob on the right of an oblong picture goes up by 45° counter-clockwise, as far from the centre as it was."""
    rows, columns = torch.meshgrid(torch.arange(25.0), torch.arange(41.0), indexing="ij")
    for turns, (row, column) in ((1, (12 - 6, 20 + 6)), (3, (12 - 6, 20 - 6))):
        blob = torch.exp(-((rows - 12) ** 2 + (columns - 20 - 72**0.5) ** 2) / 18)[None, None]
        peak = divmod(gsa.group("R8").act(blob, turns).argmax().item(), 41)
        assert abs(peak[0] - row) <= 1 and abs(peak[1] - column) <= 1


def test_every_picture_has_a_matrix_of_its_own():
    for pictures, matrices in (((2, 1, 4, 4), 3), ((3, 1, 4, 4), 2), ((2, 1, 4, 4, 4), 2)):
        with pytest.raises(ValueError, match=r"by a matrix of \[N, 2, 2\], but got the shapes \[., 1, 4, 4"):
            gsa.groups.sample_bilinearly(torch.rand(pictures), gsa.group("R8").matrices[:matrices])
