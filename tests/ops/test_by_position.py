"""Attention by position against its formula, pixel by pixel: windows of all sides, at all borders."""

from itertools import product
from unittest import mock

import pytest
import torch

import gsa
from gsa.ops import _by_matrices as by_matrices
from tests.devices import DEVICES

pytestmark = pytest.mark.usefixtures("float64")


def by_the_formula(features, scores, window, maps, padding, crops, stride):
    """Every key of every query, in loops; a window of even side stands before the pixel that it is asked for."""
    (rows, columns), (high, wide) = window.shape, features.shape[-2:]
    asked = [
        range(crop, length - crop + 1 - side % 2, stride)
        for crop, length, side in zip(crops, (high, wide), (rows, columns), strict=True)
    ]
    result = torch.zeros(len(features), maps.shape[1], scores.shape[1], *map(len, asked))
    for (a, y), (b, x) in product(enumerate(asked[0]), enumerate(asked[1])):
        keys = []
        for u, v in product(range(rows), range(columns)):
            at = y + u - rows // 2, x + v - columns // 2
            there = all(-padding <= i < length + padding for i, length in zip(at, (high, wide), strict=True))
            if window[u, v] and there:
                is_pixel = 0 <= at[0] < high and 0 <= at[1] < wide
                value = features[..., at[0], at[1]] if is_pixel else torch.zeros_like(features[..., 0, 0])
                keys.append((scores[..., u, v], value))
        of_key = torch.stack([score for score, _ in keys], -1)  # [heads, P, M, keys]
        weights = of_key.flatten(2).softmax(-1).view(of_key.shape)
        values = torch.stack([value for _, value in keys], -1)  # [B, C, M, keys]
        result[..., a, b] = torch.einsum("epmk, bcmk, eoc -> bop", weights, values, maps)
    return result


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("as_matrices", [False, True])
@pytest.mark.parametrize("sides", [(2, 2), (4, 4), (3, 2), (2, 5), (1, 4), (6, 3), (3, 5)])
@pytest.mark.parametrize("padding, crop", [(0, 0), (0, 1), (1, 0), (2, (0, 1)), (1, (1, 0)), (2, -1), (2, (-2, 0))])
def test_windows_of_all_sides_are_the_formula(sides, padding, crop, as_matrices, device, monkeypatch):
    """Maps of fewer pixels than the window has, too."""
    monkeypatch.setattr("gsa.ops._by_position._prefers_matrices", lambda *_: as_matrices)
    crops = (crop, crop) if isinstance(crop, int) else crop
    window = torch.ones(sides, dtype=torch.bool, device=device)
    window[0, 0] = max(sides) < 3 or min(sides) < 3
    for (high, wide), stride in product([(5, 6), (3, 3), (8, 7)], (1, 2, 3)):
        features = torch.randn(2, 3, 2, high, wide, device=device)
        scores, maps = torch.randn(3, 4, 2, *sides, device=device), torch.randn(3, 5, 3, device=device)
        options = {"padding": padding, "crop": crop, "stride": stride}
        found = gsa.ops.attend_by_position(features, scores, window, None, maps.transpose(0, 1), **options)
        expected = by_the_formula(features.cpu(), scores.cpu(), window.cpu(), maps.cpu(), padding, crops, stride)
        torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sides", [(3, 3), (4, 4), (2, 2), (5, 3)])
@pytest.mark.parametrize("padding, crop", [(0, 0), (2, 0), (3, -1), (1, (0, 1)), (2, 2)])
@pytest.mark.parametrize("channel_groups", [1, 2])
def test_zeros_between_the_pixels_are_the_same_whether_they_are_put_there_or_not(sides, padding, crop, channel_groups):
    """As a transposed convolution where no window is cut; the map with zeros is judged by the formula above."""
    window = torch.ones(sides, dtype=torch.bool)
    scores = torch.randn(3, 4, 2, *sides, requires_grad=True)
    out = torch.randn(4, 3, 6 // channel_groups, requires_grad=True)
    bias, options = torch.randn(4), {"padding": padding, "crop": crop, "channel_groups": channel_groups}
    for (high, wide), spread, stride in product([(3, 4), (1, 5)], (2, 3), (1, 2)):
        x = torch.randn(2, 6, 2, high, wide, requires_grad=True)
        apart = torch.zeros(2, 6, 2, (high - 1) * spread + 1, (wide - 1) * spread + 1)
        apart[..., ::spread, ::spread] = x
        if apart.shape[-2] <= 2 * max(crop if isinstance(crop, tuple) else (crop,)):
            continue
        expected = gsa.ops.attend_by_position(apart, scores, window, None, out, bias, stride=stride, **options)
        found = gsa.ops.attend_by_position(x, scores, window, None, out, bias, stride=stride, spread=spread, **options)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
        weights = torch.randn_like(found)
        for a, b in zip(
            torch.autograd.grad((weights * found).sum(), (x, scores, out)),
            torch.autograd.grad((weights * expected).sum(), (x, scores, out)),
            strict=True,
        ):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-11)
    with pytest.raises(ValueError, match="spread must be positive, but got 0"):
        gsa.ops.attend_by_position(x, scores, window, None, out, spread=0, **options)


@pytest.mark.parametrize("side, crop", [(25, 0), (24, 0), (25, 1), (24, -1)])
def test_of_windows_that_are_larger_than_the_map_what_lies_beyond_counts_and_is_not_made(side, crop, monkeypatch):
    """As of filters with wide dilation: weights of 4×5 keys, and not of all that are padded."""
    made = []
    whole = by_matrices._weights
    monkeypatch.setattr(by_matrices, "_weights", lambda *arguments: made.append(whole(*arguments)) or made[-1])
    window = torch.ones(side, side, dtype=torch.bool)
    x, scores, out = torch.randn(2, 3, 1, 4, 5), torch.randn(9, 4, 1, side, side), torch.randn(6, 9, 3)
    found = []
    for as_matrices in (False, True):
        monkeypatch.setattr("gsa.ops._by_position._prefers_matrices", lambda *_, chosen=as_matrices: chosen)
        found.append(gsa.ops.attend_by_position(x, scores, window, None, out, padding=side // 2 + 1, crop=crop))
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)
    assert [weights.shape[-2:] for weights in made] == [(4, 5)]


@pytest.mark.filterwarnings("ignore:heads move, so that attention in the place of")
def test_windows_much_larger_than_the_map_are_no_kernel():
    """Which would have 44 million weights, where the map has 14×14 pixels and the window 73×73."""
    layer = gsa.nn.replace_convolutions(torch.nn.Conv2d(64, 32, 3, padding=36, dilation=36).float(), "R4")
    x = torch.rand(1, 64, 14, 14, dtype=torch.float32)
    with torch.no_grad(), mock.patch("gsa.ops._by_position.convolved", side_effect=AssertionError):
        assert layer(x).shape == (1, 32, 14, 14)


def test_the_window_must_hold_the_pixels_that_its_middle_lies_between():
    features, maps = torch.randn(1, 2, 1, 5, 6), torch.randn(4, 3, 2)
    for sides, middle in (((2, 3), (0, 1)), ((4, 4), (2, 1)), ((3, 2), (1, 1))):
        window = torch.ones(sides, dtype=torch.bool)
        window[middle] = False
        with pytest.raises(ValueError, match="window must hold its middle entry"):
            gsa.ops.attend_by_position(features, torch.randn(3, 4, 1, *sides), window, None, maps)


def test_crops_of_rows_and_of_columns_must_leave_some():
    features, window = torch.randn(1, 2, 1, 5, 6), torch.ones(3, 3, dtype=torch.bool)
    scores, maps = torch.randn(3, 4, 1, 3, 3), torch.randn(4, 3, 2)
    with pytest.raises(ValueError, match=r"cropping \(1, 3\) rows and columns from every end leaves nothing of a 5×6"):
        gsa.ops.attend_by_position(features, scores, window, None, maps, crop=(1, 3))
    with pytest.raises(ValueError, match=r"cropping -2 pixels .*, or asks beyond a padding of 1"):
        gsa.ops.attend_by_position(features, scores, window, None, maps, padding=1, crop=-2)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"features": (2, 3, 2, 5, 5)}, r"features must be \[B, C, 4, H, W\] here"),
        ({"window": (3, 5)}, r"the same sides, but got \[3, 3\] and \[3, 5\]"),
        ({"value": (2, 4, 2)}, r"value must be \[2, d, 3\] here"),
        ({"out": (5, 2, 3)}, r"out must be \[C′, 2, 4\] here"),
        ({"bias": (4,)}, r"bias must be \[5\] here, as out is, but got the shape \[4\]"),
        ({"dtype": torch.float32}, "window must be of dtype bool, but got torch.float32"),
        ({"stride": 0}, "stride must be positive, but got 0"),
        ({"crop": 3}, "cropping 3 pixels from every border leaves nothing of a 5×6 map"),
        ({"crop": -1}, "cropping -1 pixels"),
        ({"padding": -1}, "padding must not be negative, but got -1"),
        ({"window": (3, 3), "centre": False}, "window must hold its middle entry"),
        ({"channel_groups": 2}, "channel_groups must divide 3 channels and 5 of the result, but got 2"),
        ({"channel_groups": 0}, "channel_groups must divide .*, but got 0"),
        ({"channel_groups": 3, "out": (6, 2, 1), "bias": (6,)}, "value must be None where channels are in groups"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(change, message):
    fitting = {
        "features": (2, 3, 4, 5, 6), "scores": (2, 4, 4, 3, 3), "window": (3, 3), "value": (2, 4, 3), "out": (5, 2, 4)
    }  # fmt: skip

    def attended(centre=True, dtype=torch.bool, padding=0, crop=0, stride=1, channel_groups=1, **shapes):
        tensors = {name: torch.ones(shape) for name, shape in (fitting | shapes).items()}
        tensors["window"][1, 1] = centre
        tensors["window"] = tensors["window"].to(dtype)
        options = {"padding": padding, "crop": crop, "stride": stride, "channel_groups": channel_groups}
        return gsa.ops.attend_by_position(**tensors, **options)

    assert attended().shape == (2, 5, 4, 5, 6)
    with pytest.raises(ValueError, match=message):
        attended(**change)
