"""Encodings turn by any angle without interpolation; features are sampled, and drift."""

import pytest
import torch

import gsa
from gsa.encodings import Neighbourhood
from gsa.symmetry import statements

pytestmark = pytest.mark.usefixtures("float64")
WINDOW = Neighbourhood(5)


def made(kind, group, form="regular", neighbourhood=WINDOW):
    return gsa.encodings.encoding(kind, gsa.group(group), 12, neighbourhood, form, 9)


@pytest.mark.parametrize("group", ["R4", "R8", "R16", "R8M"])
@pytest.mark.parametrize("kind", ["functional", "fourier", "rotary", "quadratic"])
def test_every_pose_sees_the_encoding_at_turned_offsets(kind, group):
    for form in ("lifting", "regular"):
        for neighbourhood in (WINDOW, Neighbourhood(None)):
            encoding = made(kind, group, form, neighbourhood)
            errors = statements.steering_errors(encoding, neighbourhood)
            assert len(errors) == encoding.group.order and max(errors.values()) < 1e-14
    encoding.inverse_matrices = encoding.group.matrices.clone()  # planted: turned the other way
    assert statements.steering_errors(encoding, neighbourhood)[1] > 0.1


def test_encodings_without_offsets_are_refused():
    with pytest.raises(ValueError, match="is not absolute, but got absolute"):
        statements.steering_errors(made("absolute", "R4"), WINDOW)
    for kind in ("absolute", "rotary"):
        with pytest.raises(ValueError, match=f"is not absolute or rotary, but got {kind}"):
            statements.interpolation_errors(made(kind, "R4"), WINDOW)


def test_a_table_turns_on_the_grid():
    assert max(statements.steering_errors(made("table", "R4M"), WINDOW).values()) == 0


@pytest.mark.parametrize("kind", ["functional", "fourier", "quadratic"])
def test_a_table_between_the_pixels_would_be_deformed(kind):
    errors = statements.interpolation_errors(made(kind, "R8"), WINDOW)
    assert max(errors[h] for h in (0, 2, 4, 6)) < 1e-14
    assert min(errors[h] for h in (1, 3, 5, 7)) > 0.03
    with pytest.raises(ValueError, match="expected an odd side, but got None"):
        statements.interpolation_errors(made(kind, "R8"), Neighbourhood(None))


def test_wide_disks_turn_with_the_picture_and_squares_by_quarters_only():
    y, x = torch.meshgrid(*2 * [torch.arange(-24.0, 25)], indexing="ij")
    blobs = (a * (-((x - u) ** 2 + (y - v) ** 2) / 50).exp() for a, u, v in ((1, 4, 2), (-1, -5, 3), (1, 0, -6)))
    picture, errors = sum(blobs)[None, None], {}  # so smooth that it hardly suffers from being sampled
    for window in ("square", "disk"):
        torch.manual_seed(0)
        layer = gsa.nn.LiftingSelfAttention("R8", 1, 8, neighbourhood=9, window=window)
        errors[window] = gsa.symmetry.equivariance_error(layer, picture, "R8")
    assert max(errors["square"][2], errors["disk"][2]) < 1e-14
    assert 5 * errors["disk"][1] < errors["square"][1]


def drift(group, degrees, of="R8"):
    keywords = {"group": group, "form": "regular", "channels": 4, "blocks": (1, 1, 1), "pools": (2, 0, 0)}
    network = gsa.create_model("digits_r4_sa", **keywords).double()
    picture = torch.zeros(1, 1, 20, 20)
    picture[..., 6:14, 6:14] = torch.rand(1, 1, 4, 4).repeat_interleave(2, -2).repeat_interleave(2, -1)
    return statements.drift_by_depth(network, picture, of, degrees)


def test_features_drift_with_depth_at_45_degrees_and_not_at_90():
    sampled = drift("R8", 45)
    assert 1e-3 < sampled["lifting"] < sampled["stages.0.0"] < sampled["stages.1.0"] < 0.7
    assert max(drift("R8", 90).values()) < 1e-12


def test_angles_may_be_negative_and_more_than_a_turn():
    layer, picture = torch.nn.Conv2d(1, 2, 3), torch.rand(1, 1, 8, 8)
    told = [statements.drift_by_depth(layer, picture, "R8", degrees) for degrees in (-45, 315, 675)]
    assert told[0] == told[1] == told[2] != statements.drift_by_depth(layer, picture, "R8", 45)
    assert not any(name.startswith("stages") for name in drift("R4", 45))  # features of four poses do not turn by 45°
    assert max(drift("R4", 90, "R4").values()) < 1e-12
    with pytest.raises(ValueError, match="R8 turns by multiples of 45°, but got 30°"):
        drift("R8", 30)
