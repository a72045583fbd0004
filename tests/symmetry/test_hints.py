"""What a map that breaks a symmetry of scalars or fields keeps instead is told, and is what passes."""

import pytest
import torch
from torch import nn

import gsa
from gsa.symmetry import GroupAction, LayerReport, Shifts, assert_equivariant

WIND = ["vector", "scalar"]


class Steered(nn.Module):
    """The wind and the pressure to the wind, by a convolution in every pose; with vectors of a convention."""

    def __init__(self, group="R4M", takes=WIND, returns="vector", to_ours=((1.0, 0.0), (0.0, 1.0))):
        super().__init__()
        self.fields = gsa.nn.FieldsToPoses(group, takes)
        self.group = gsa.nn.GroupConvolution(group, 3, 2, 3)
        self.out = gsa.nn.PosesToFields(group, returns)
        self.double()
        self.to_ours = torch.tensor(to_ours).double()

    def forward(self, x):
        wind = torch.einsum("xy,byhw->bxhw", self.to_ours, x[:, :2])
        answer = self.out(self.group(self.fields(torch.cat((wind, x[:, 2:]), 1))))
        return torch.einsum("xy,byhw->bxhw", self.to_ours.T, answer)


@pytest.mark.parametrize(("network", "asked", "told"), [
    (Steered(), GroupAction("R4M", WIND), "GroupAction('R4M', inputs=['vector', 'scalar'], outputs='vector')"),
    (Steered(takes=WIND[::-1]), GroupAction("R4M", WIND, "vector"), "it takes ['scalar', 'vector'] and every channel"),
    (Steered(takes=["scalar"] * 3), GroupAction("R4M", WIND, "vector"), "it takes 'scalar' and every channel"),
    (Steered(returns="pair"), GroupAction("R4M", WIND, "vector"), "part of a field, 'pair': judge it by"),
    (Steered(to_ours=((1, 0), (0, -1))), GroupAction("R4M", WIND, "vector"), "its vectors are (right, down): (first"),
    (Steered(to_ours=((0, 1), (-1, 0))), GroupAction("R4M", WIND, "vector"), "its vectors are (down, right): (sec"),
])  # fmt: skip
def test_other_fields_and_conventions_are_found(network, asked, told):
    x = torch.randn(2, 3, 7, 7).double()
    with pytest.raises(AssertionError) as error:
        assert_equivariant(network, x, asked)
    assert told in str(error.value)
    report = str(LayerReport.of(network, x, asked))
    assert "Steered breaks it, but it keeps it if " in report and told in report


def test_nothing_is_told_of_what_keeps_nothing():
    upright = nn.Conv2d(3, 2, 3).double()
    report = str(LayerReport.of(upright, torch.randn(2, 3, 7, 7).double(), GroupAction("R4M", WIND, "vector")))
    assert "breaks it, but" not in report and "first broken after the input" in report


def test_fields_of_other_units_are_judged_each_beside_its_own_size():
    """Planted: a wind that stays as it is, beside a pressure that is a hundred thousand times as large."""

    class State(nn.Module):
        def __init__(self, wind):
            super().__init__()
            self.wind = wind

        def forward(self, x):
            return torch.cat((1e5 * x[:, 2:] + 1e5, self.wind(x[:, :2])), 1)

    x = torch.randn(2, 3, 7, 7)
    for dtype in (torch.float32, torch.float64):
        both = GroupAction("R4M", WIND, WIND[::-1])
        assert not LayerReport.of(State(lambda wind: wind), x.to(dtype), both).broken
        for wrong in (lambda wind: wind[:, [0, 0]], lambda wind: wind.flip(1)):
            assert LayerReport.of(State(wrong), x.to(dtype), both).broken
    zero = State(lambda wind: 1e-17 * wind.cos().mean() * torch.ones_like(wind))  # what rounding leaves of nothing
    assert_equivariant(zero.double(), x.double(), both)


def test_a_layer_that_says_its_field_is_judged_as_that():
    """Planted: what comes after it is wrong. Of a pseudoscalar inside, the ends say nothing."""

    class Curl(nn.Module):
        def __init__(self, sign):
            super().__init__()
            self.lift = gsa.nn.LiftingConvolution("R4M", 1, 1, 5)
            self.stream = gsa.nn.PosesToFields("R4M", "pseudoscalar")
            self.sign = sign
            self.double()

        def forward(self, x):
            stream = self.stream(self.lift(x))
            down, right = stream.diff(dim=2)[..., :-1] + stream.diff(dim=2)[..., 1:], stream.diff(dim=3)
            return torch.cat((-down, -self.sign * (right[:, :, :-1] + right[:, :, 1:])), 1)

    x, action = torch.rand(2, 1, 8, 8).double(), GroupAction("R4M", outputs="vector")
    report = LayerReport.of(Curl(1), x, action)
    assert not report.broken and report.first_broken is None
    assert LayerReport.of(Curl(-1), x, action).first_broken[0] == "Curl"


def test_vectors_are_told_from_scalars_that_break():
    """What answers vectors is no failure of the network, but of the question, which the message says."""
    network = nn.Sequential(gsa.nn.LiftingConvolution("R4", 1, 2, 3), gsa.nn.PosesToFields("R4")).double()
    x = torch.rand(2, 1, 6, 6).double()
    with pytest.raises(AssertionError, match=r"GroupAction\('R4', outputs='vector'\), or --returns vector\n"):
        assert_equivariant(network, x, "R4")
    of_axes = nn.Sequential(network[0], gsa.nn.PosesToFields("R4", "axis"))
    with pytest.raises(AssertionError, match=r"GroupAction\('R4', outputs='axis'\), or --returns axis\n"):
        assert_equivariant(of_axes, x, "R4")
    for broken in (nn.Conv2d(1, 2, 3), nn.Conv2d(1, 3, 3)):
        with pytest.raises(AssertionError, match="not equivariant under 90°, 180°, 270°\n"):
            assert_equivariant(broken.double(), x, "R4")


def test_a_report_of_a_network_of_vectors_blames_the_layer_that_breaks():
    class Doubled(nn.Module):
        def forward(self, vectors):
            return vectors * torch.tensor([1.0, 2.0, 1.0, 2.0], dtype=vectors.dtype)[:, None, None]

    make, x = gsa.nn.LiftingConvolution, torch.rand(2, 2, 6, 6).double()
    action = gsa.symmetry.GroupAction("R4", inputs="vector", outputs="vector")
    sound = [gsa.nn.FieldsToPoses("R4"), gsa.nn.GroupConvolution("R4", 2, 4, 3), gsa.nn.PosesToFields("R4")]
    for backward in (False, True):
        report = gsa.symmetry.LayerReport.of(nn.Sequential(*sound).double(), x, action, backward=backward)
        assert not report.broken and report.first_broken is None
    broken = nn.Sequential(*sound, Doubled(), nn.Conv2d(4, 4, 1, groups=2)).double()
    assert gsa.symmetry.LayerReport.of(broken, x, action).first_broken[0] == "3"
    scalars = nn.Sequential(make("R4", 2, 4, 3), gsa.nn.PosesToFields("R4")).double()
    assert gsa.symmetry.LayerReport.of(scalars, x, gsa.symmetry.GroupAction("R4", outputs="vector")).broken == []


def test_what_is_said_of_vectors_is_what_passes():
    """Their inputs are said, too; of an action of one's own, nothing is."""
    x, actions = torch.rand(2, 2, 6, 6).double(), gsa.symmetry.GroupAction
    for kind in ("vector", "axis"):
        field = nn.Sequential(gsa.nn.FieldsToPoses("R4", kind), gsa.nn.PosesToFields("R4", kind)).double()
        with pytest.raises(AssertionError, match="judge it by ") as told:
            assert_equivariant(field, x, actions("R4", inputs=kind))
        said, _, words = str(told.value).partition("judge it by ")[2].splitlines()[0].partition(", or ")
        assert said == f"GroupAction('R4', inputs={kind!r}, outputs={kind!r})"
        assert words == f"--takes {kind} --returns {kind}"
        assert_equivariant(field, x, eval(said, {"GroupAction": actions}))

    class Mine(actions):
        pass

    with pytest.raises(AssertionError, match="not equivariant under 90°, 180°, 270°\n"):
        assert_equivariant(field, x, Mine("R4", inputs=3))


def test_vectors_whose_channels_come_last_are_judged_by_another_convention_too():
    """Planted: one that keeps none."""

    def last(network):
        return lambda x: network(x).movedim(1, -1)

    x = torch.randn(2, 3, 7, 7).double()
    for network, told in ((Steered(to_ours=((1, 0), (0, -1))), "vectors are (right, down)"), (nn.Conv2d(3, 2, 3), "")):
        with pytest.raises(AssertionError) as error:
            assert_equivariant(last(network.double()), x, GroupAction("R4M", WIND, "vector"))
        assert told in str(error.value) and ("but it keeps it" in str(error.value)) == bool(told)


def test_a_large_channel_hides_no_small_one_from_what_is_told():
    """Planted: in float32, a vector that no turn moves is as nothing beside a number a million times as large."""
    torch.manual_seed(0)
    arrow = nn.Conv2d(1, 2, 8)
    with pytest.raises(AssertionError) as error:
        assert_equivariant(
            lambda x: torch.cat((1e6 * x.mean((2, 3)), arrow(x).flatten(1)), 1),
            torch.rand(3, 1, 8, 8),
            GroupAction("R4", outputs=["scalar", "vector"]),
        )
    assert "but it keeps it" not in str(error.value)


@pytest.mark.parametrize("symmetry", ["R4", Shifts((2, 0))])
def test_what_is_random_is_said_to_be_under_any_symmetry(symmetry):
    network, x = nn.Sequential(nn.Conv2d(1, 2, 1), Noisy()).double(), torch.rand(2, 1, 8, 8).double()
    with pytest.raises(AssertionError, match="and has other outputs for the same input: is it random"):
        assert_equivariant(network, x, symmetry)
    assert "Sequential breaks it, and has other outputs for the same input" in str(LayerReport.of(network, x, symmetry))


class Noisy(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5)
