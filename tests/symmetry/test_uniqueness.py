"""Encodings tell all elements of the group apart."""

import pytest
import torch

import gsa
from gsa.encodings import KINDS, Neighbourhood
from gsa.symmetry import statements

pytestmark = pytest.mark.usefixtures("float64")
GROUPS = ("R4", "R8", "R12", "R16", "R4M", "R8M", "R16M")
WINDOW = Neighbourhood(5)


def made(kind, group, neighbourhood=WINDOW, form="regular"):
    dimension = 12 if kind == "rotary" else 10
    return gsa.encodings.encoding(kind, gsa.group(group), dimension, neighbourhood, form, 9)


@pytest.mark.parametrize("kind, group", [
    (kind, group) for kind in ("functional", "fourier", "quadratic", "table") for group in GROUPS
    if kind != "table" or gsa.group(group).is_on_grid
])  # fmt: skip
def test_no_two_elements_share_an_encoding(kind, group):
    encoding = made(kind, group)
    assert statements.encoding_vectors(encoding, WINDOW).shape[:2] == (25, gsa.group(group).order)
    assert statements.closest_encodings(encoding, WINDOW) > 1e-3
    if kind != "quadratic":
        encoding.pose_vectors.data[1] = encoding.pose_vectors[2]  # planted: two poses tied
        assert statements.closest_encodings(encoding, WINDOW) == 0


def test_planted_collisions():
    assert statements.closest_encodings(made("constant", "R4"), WINDOW) == 0
    encoding = made("table", "R4")
    encoding.table.data[0, 0] = encoding.table[3, 1]
    assert statements.closest_encodings(encoding, WINDOW) == 0
    encoding = made("quadratic", "R8M")
    encoding.pose_vectors[:, -1] = 1  # without the sheet
    assert statements.closest_encodings(encoding, WINDOW) < 1e-12
    encoding = made("functional", "R4")
    for parameter in encoding.row.parameters():
        torch.nn.init.zeros_(parameter)  # rows alike
    assert statements.closest_encodings(encoding, WINDOW) == 0


def test_distances_are_relative_to_the_typical_length():
    encoding = made("fourier", "R4")
    vectors = statements.encoding_vectors(encoding, WINDOW).flatten(0, 1)
    expected = torch.pdist(vectors).min() / vectors.norm(dim=1).square().mean().sqrt()
    assert statements.closest_encodings(encoding, WINDOW) == pytest.approx(expected.item())


def test_what_gives_elements_no_vectors_is_refused():
    for kind in ("absolute", "rotary"):
        with pytest.raises(ValueError, match=f"is not absolute or rotary, but got {kind}"):
            statements.closest_encodings(made(kind, "R4"), WINDOW)
    with pytest.raises(ValueError, match="of a group layer, but got one of a lifting layer"):
        statements.encoding_vectors(made("fourier", "R4", form="lifting"), WINDOW)
    one = Neighbourhood(1)
    with pytest.raises(ValueError, match="two elements .* but got a single one"):
        statements.closest_encodings(made("fourier", "Z2", one), one)


def test_global_attention_too():
    everywhere = Neighbourhood(None)
    for kind in KINDS.keys() & {"functional", "fourier", "quadratic"}:
        assert statements.closest_encodings(made(kind, "R4", everywhere), everywhere, side=4) > 1e-3
