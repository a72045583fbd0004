"""The tables of every group are those of its matrices, and obey its laws."""

import copy
import itertools
import pickle

import numpy
import pytest
import torch
from torch._subclasses import FakeTensorMode

import gsa
from gsa.groups import Group, _planar
from tests.conftest import ALL_GROUPS


@pytest.mark.parametrize("name", ALL_GROUPS)
def test_tables_are_those_of_the_matrices(name):
    group = gsa.group(name)
    products = torch.einsum("aij,bjk->abik", group.matrices, group.matrices)
    torch.testing.assert_close(products, group.matrices[group.product], rtol=0, atol=1e-15)
    torch.testing.assert_close(group.matrices.mT, group.matrices[group.inverse], rtol=0, atol=1e-15)
    assert group.matrices.dtype == torch.float64
    assert group.product.dtype == group.inverse.dtype == torch.int64


@pytest.mark.parametrize("name", ALL_GROUPS)
def test_group_laws_hold_for_all_elements(name):
    group = gsa.group(name)
    product, inverse, everyone = group.product, group.inverse, torch.arange(group.order)
    for row in (*product, *product.T):  # closure and cancellation
        assert torch.equal(row.sort().values, everyone)
    assert torch.equal(product[0], everyone) and torch.equal(product[:, 0], everyone)
    assert (product[everyone, inverse] == 0).all() and (product[inverse, everyone] == 0).all()
    left = product[product]  # (a·b)·c
    right = product[:, product]  # a·(b·c)
    assert torch.equal(left, right)


@pytest.mark.parametrize("name, order", [("Z2", 1), ("Z2M", 2), ("R4", 4), ("R16", 16), ("R4M", 8), ("R8M", 16)])
def test_order_and_name(name, order):
    group = gsa.group(name)
    assert (group.order, len(group), group.name, tuple(group.matrices.shape)) == (
        order,
        order,
        name,
        (order, 2, 2),
    )


def test_only_mirrored_groups_of_more_than_two_rotations_do_not_commute():
    for name in ALL_GROUPS:
        group = gsa.group(name)
        abelian = torch.equal(group.product, group.product.T)
        assert abelian == (not (group.mirrored and group.rotations > 2)), name


def test_elements_follow_the_convention():
    group = gsa.group("R4M")
    assert torch.equal(group.matrices[1], torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64))
    assert torch.equal(group.matrices[4], torch.diag(torch.tensor([-1.0, 1.0], dtype=torch.float64)))
    for quarter in gsa.group("R16").grid_elements:
        assert set(gsa.group("R16").matrices[quarter].abs().flatten().tolist()) == {0.0, 1.0}


def test_elements_multiply_and_invert():
    group = gsa.group("R8M")
    for a, b in itertools.product(group, group):
        torch.testing.assert_close((a @ b).matrix, a.matrix @ b.matrix, rtol=0, atol=1e-15)
        assert int(~a @ a) == 0
    assert repr(group[9]) == "R8M[9] (mirror, then 45°)"


def test_elements_of_different_groups_do_not_mix():
    with pytest.raises(ValueError, match="an element of R4, but got one of R8"):
        gsa.group("R4")[1] @ gsa.group("R8")[1]


@pytest.mark.parametrize("name", ["", "R", "R1", "R0", "R1M", "r4", "R4MM", "R04", "D4", "Z3", 4, None, ["R4"]])
def test_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match=r"Z2 .* R<n> with n ≥ 2 .* but got"):
        gsa.group(name)


def test_a_group_is_one_object():
    assert gsa.group(gsa.group("R4")) is gsa.group("R4")
    assert gsa.group("R4") != gsa.group("R4M")


def test_groups_survive_copies():
    group = gsa.group("R12")
    assert pickle.loads(pickle.dumps(group)) is group and copy.deepcopy(group) is group


@pytest.mark.parametrize(
    "name, on_grid", [("Z2M", 2), ("R2", 2), ("R3", 1), ("R4M", 8), ("R8", 4), ("R8M", 8), ("R6", 2)]
)
def test_grid_elements(name, on_grid):
    group = gsa.group(name)
    assert len(group.grid_elements) == on_grid
    assert group.is_on_grid == (on_grid == group.order)


class UpDown(Group):
    """A group of somebody's own."""

    def __init__(self):
        super().__init__(rotations=1, mirrored=True)
        self.name = "Z2V"
        self.matrices = torch.diag_embed(torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_group_of_ones_own_is_copied_with_what_it_has(copied):
    layer, x = gsa.nn.LiftingSelfAttention(UpDown(), 1, 4, head_dim=6), torch.rand(1, 1, 5, 5)
    other = copied(layer)
    assert type(other.group) is UpDown and torch.equal(other(x), layer(x))
    assert copied(gsa.group("R4")) is gsa.group("R4")


def test_a_group_of_ones_own_is_no_other_that_is_called_alike():
    other = UpDown()
    other.name = "Z2M"
    assert UpDown() == UpDown() and other != gsa.group("Z2M") and gsa.group("R4") != "R4"
    with pytest.raises(ValueError, match="made for this layer's group"):
        gsa.nn.GroupSelfAttention("Z2M", 4, 4, head_dim=6, encoding=gsa.encodings.FunctionalEncoding(other, 6))


@pytest.mark.parametrize("mode", [torch.inference_mode, FakeTensorMode])
def test_a_group_that_is_kept_does_not_keep_the_mode_it_was_first_asked_for_in(mode):
    with mode():
        group = gsa.group("R14")
        del group
    x = torch.rand(1, 1, 14, 5, 5, requires_grad=True)
    gsa.group("R14").act(x, 1).sum().backward()
    assert type(gsa.group("R14").matrices) is torch.Tensor and x.grad is not None
    _planar._build.cache_clear()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while compiling
def test_a_traced_action_is_the_action():
    groups = [gsa.group(name) for name in ("R8", "R4M")]

    class Moved(torch.nn.Module):
        def forward(self, x):
            return groups[0].act(x, 1) + groups[0].act(x, 2) + groups[1].act(x, 5)

    x = torch.rand(1, 2, 5, 5)
    torch.testing.assert_close(torch.export.export(Moved(), (x,)).module()(x), Moved()(x))


def test_matrices_that_are_no_turn_or_mirror_are_refused():
    for matrix in ([[1, 1], [0, 1]], [[2, 0], [0, 2]], [[0.5, 0], [0, 2]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]):
        with pytest.raises(ValueError, match=r"moved by orthogonal matrices \[2, 2\], but got"):
            gsa.groups.act_on_plane(torch.rand(1, 1, 4, 4), torch.tensor(matrix, dtype=torch.float64))
    with pytest.raises(
        ValueError, match="at most 4096 rotations, all of whose products are in a table, but got 100000"
    ):
        gsa.group("R100000")
    with pytest.raises(ValueError, match="rotations must be a positive integer, but got 0"):
        Group(0, False)


@pytest.mark.parametrize("group", ALL_GROUPS)
@pytest.mark.parametrize("fold", [1, 2, 3, 8])
def test_directions_are_moved_as_their_vectors_are(group, fold):
    """A homomorphism; and the vector of a direction goes to that of the moved direction, mirrors included."""
    found, made = gsa.group(group), gsa.group(group).representation(fold)
    assert made.dtype == torch.float64 and (fold > 1 or torch.equal(made, found.matrices))
    torch.testing.assert_close(made[:, None] @ made, made[found.product])
    for angle in torch.linspace(0, 6, 7, dtype=torch.float64):
        directions = found.matrices @ torch.stack((angle.cos(), angle.sin()))
        moved = fold * torch.atan2(directions[:, 1], directions[:, 0])
        vectors = made @ torch.stack(((fold * angle).cos(), (fold * angle).sin()))
        torch.testing.assert_close(vectors, torch.stack((moved.cos(), moved.sin()), -1))
    with pytest.raises(ValueError, match="the fold of directions .* but got 0"):
        found.representation(0)


@pytest.mark.parametrize("group", ALL_GROUPS)
def test_fields_of_every_kind_are_representations(group):
    found = gsa.group(group)
    det = torch.linalg.det(found.matrices)
    kinds = {"scalar": 1, "pseudoscalar": 1, "pair": 2, "vector": 2, "axis": 2, 3: 2, "pair*vector": 4, "pair*pair": 4}
    for kind, numbers in kinds.items():
        made = found.representation(kind)
        assert made.shape == (found.order, numbers, numbers) and made.dtype == torch.float64
        torch.testing.assert_close(made[:, None] @ made, made[found.product])
        torch.testing.assert_close(made.mT @ made, torch.eye(numbers).to(made).expand_as(made))
    assert torch.equal(found.representation(numpy.int64(3)), found.representation(3))
    together = found.representation(list(kinds))
    assert together.shape[1] == sum(kinds.values()) and torch.equal(together[:, 4:6, 4:6], found.matrices)
    assert torch.equal(together[:, 1, 1], found.representation("pseudoscalar").flatten())
    torch.testing.assert_close(found.representation("pseudoscalar").flatten(), det)
    left = found.representation("pair")[:, 0, 0]
    torch.testing.assert_close(left, (1 + det) / 2)  # what belongs to the left does so unless it is mirrored
    assert torch.equal(found.representation("pair*vector")[:, 2:, 2:], left[:, None, None] * found.matrices)


@pytest.mark.parametrize(
    "wrong", ["vectors", "", [], ["scalar", "arrow"], 1.5, None, True, 0, -1, "pair*", ("axis", [1]), b"vector"]
)
def test_a_field_of_no_kind_is_refused(wrong):
    with pytest.raises(ValueError, match=r"a field is one of \['scalar', .*, but got "):
        gsa.group("R4").representation(wrong)


def test_an_element_is_the_index_of_its_pose():
    group, feature = gsa.group("R4M"), torch.rand(1, 2, 8, 3, 3)
    assert torch.equal(feature[:, :, group[5]], feature[:, :, 5]) and torch.equal(
        group.matrices[group[5]], group[5].matrix
    )


@pytest.mark.parametrize("elsewhere, here", [
    ("C4", "'R4'"), ("D4", "'R4M'"), ("p4", "'R4'"), ("p4m", "'R4M'"), ("r8m", "'R8M'"), ("C1", "'Z2'"),
    ("D_1", "'Z2M'"), ("z2m", "'Z2M'"),
])  # fmt: skip
def test_what_a_group_is_called_elsewhere_is_said_in_our_words(elsewhere, here):
    with pytest.raises(ValueError, match=f"but got '{elsewhere}': here it is {here}$"):
        gsa.group(elsewhere)
    for other in ("Z3", "Q8", "SO2"):  # of which nothing is said
        with pytest.raises(ValueError, match=f"but got '{other}'$"):
            gsa.group(other)
