"""What encodings are made of: sizes, groups, kinds of one's own; what is not possible is refused."""

import pytest
import torch

import gsa
from gsa.encodings import (
    FORMS,
    KINDS,
    AbsoluteEncoding,
    ConstantEncoding,
    Encoding,
    FourierEncoding,
    FunctionalEncoding,
    Neighbourhood,
    TableEncoding,
    encoding,
)
from gsa.nn import GroupSelfAttention, LiftingSelfAttention
from gsa.symmetry import translation_error
from tests.encodings.test_encodings import layer, picture

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("size", [0, -3, 2, 4, 2.5, True, "5"])
def test_windows_without_a_centre_are_refused(size):
    with pytest.raises(ValueError, match=r"odd number of pixels .* or None for global attention, but got"):
        Neighbourhood(size)
    with pytest.raises(ValueError, match="odd number of pixels"):
        LiftingSelfAttention("R4", 1, 1, neighbourhood=size)


def test_arguments_out_of_range_are_refused():
    group = gsa.group("R8")
    with pytest.raises(ValueError, match=r"maps? the grid to itself .* but got R8"):
        encoding("table", group, 6, Neighbourhood(3))
    with pytest.raises(ValueError, match="finite neighbourhood"):
        encoding("table", gsa.group("R4"), 6, Neighbourhood(None))
    with pytest.raises(ValueError, match="must be even, but got 5"):
        encoding("rotary", group, 5, Neighbourhood(3))
    with pytest.raises(ValueError, match="at least 3, but got 2"):
        FunctionalEncoding(group, 2)
    with pytest.raises(ValueError, match="bandwidth must not be negative, but got -1"):
        FourierEncoding(group, 6, bandwidth=-1)
    with pytest.raises(ValueError, match="encoding must be one of"):
        encoding("sinusoidal", group, 6, Neighbourhood(3))
    with pytest.raises(ValueError, match=r"\(R8, 6\), but was made for \(R4, 6\)"):
        encoding(FunctionalEncoding(gsa.group("R4"), 6), group, 6, Neighbourhood(3))
    with pytest.raises(ValueError, match="window must be one of"):
        Neighbourhood(3, "circle")


def test_a_learned_absolute_encoding_knows_its_size():
    module = layer(AbsoluteEncoding(gsa.group("R4"), 6, learned=(2, 8, 8)), "lifting")
    assert translation_error(module, picture("lifting"), (1, 0), margin=3) > 1e-4
    with pytest.raises(ValueError, match=r"learned for \[2, 8, 8\] .* but got features of \[2, 6, 8\]"):
        module(picture("lifting", height=6))


def test_encodings_made_for_another_layer_are_refused():
    group = gsa.group("R4")
    with pytest.raises(ValueError, match=r"list this layer's neighbourhood \(5\), but lists 3×3"):
        GroupSelfAttention(group, 2, 2, 2, 6, 5, TableEncoding(group, 6, Neighbourhood(3)))
    with pytest.raises(ValueError, match="made with lifting=True, but has lifting=False"):
        LiftingSelfAttention(group, 2, 2, 2, 6, 3, FunctionalEncoding(group, 6))
    with pytest.raises(ValueError, match="encoding must be one of"):
        encoding(["table"], group, 6, Neighbourhood(3))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_groups_go_by_their_names(kind):
    more = {"neighbourhood": Neighbourhood(3)} if kind.name in ("table", "quadratic") else {}
    more |= {"num_heads": 2} if kind.name == "quadratic" else {}
    assert kind("R4", 8, **more).group == gsa.group("R4")
    with pytest.raises(ValueError, match="group"):
        kind("R4.5", 8, **more)


def test_a_kind_is_found_by_the_name_it_declares():
    assert list(KINDS) == ["functional", "table", "fourier", "rotary", "quadratic", "constant", "absolute"]
    for name, kind in KINDS.items():
        assert kind.name == name and set(kind.forms) <= set(FORMS)
        made = encoding(name, gsa.group("R4"), 6, Neighbourhood(3), form="lifting")
        assert type(made) is kind and isinstance(made, Encoding)


class OwnKind(ConstantEncoding):
    """An encoding of somebody else, for one form."""

    name = "toy"
    forms = ("summed",)
    limit = "was written for sums and "


def test_a_kind_says_which_forms_it_serves():
    own = OwnKind(gsa.group("R4"), 6)
    assert GroupSelfAttention("R4", 2, 2, 2, 6, 3, own, form="summed").encoding is own
    message = "a toy encoding was written for sums and cannot serve form='regular'; use form='summed', or another"
    with pytest.raises(ValueError, match=message):
        GroupSelfAttention("R4", 2, 2, 2, 6, 3, own, form="regular")
    with pytest.raises(ValueError, match="cannot serve form='lifting'"):
        LiftingSelfAttention("R4", 2, 2, 2, 6, 3, own)


class OfOnePose(FunctionalEncoding):
    """Its table is for one pose only, whatever the group."""

    def spatial(self, offsets):
        return super().spatial(offsets)[:1]


@pytest.mark.parametrize("layer, options", [(LiftingSelfAttention, {}), (GroupSelfAttention, {"form": "summed"})])
def test_a_table_of_fewer_poses_than_the_group_has_is_refused(layer, options):
    made = layer("R4", 2, 2, 2, 6, 3, OfOnePose(gsa.group("R4"), 6, lifting=not options), **options)
    with pytest.raises(ValueError, match="a table for each of the 4 poses, .* but OfOnePose returns one for 1"):
        made(torch.rand(1, 2, 4, 5, 5) if options else torch.rand(1, 2, 5, 5))
