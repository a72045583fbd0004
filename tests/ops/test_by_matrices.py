"""Attention by position as matrices equals its convolution; what is chosen is what has fewer products."""

import pytest
import torch

import gsa
from gsa.nn import GroupSelfAttention, PosedAttention
from tests.devices import DEVICES

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("padding, crop, stride", [(0, 0, 1), (2, 0, 3), (1, 2, 2)])
@pytest.mark.parametrize("has_values", [True, False])
@pytest.mark.parametrize("device", DEVICES)
def test_matrices_are_the_convolution(monkeypatch, device, has_values, padding, crop, stride):
    """Values, gradients and where there are no maps of values; what is chosen is what has fewer products."""
    window = torch.ones(3, 5, dtype=torch.bool, device=device)
    window[0, 1] = False
    options = {"requires_grad": True, "device": device}
    tensors = {
        "features": torch.randn(2, 4, 2, 6, 7, **options),
        "scores": torch.randn(3, 4, 2, 3, 5, **options),
        "value": torch.randn(3, 2, 4, **options) if has_values else None,
        "out": torch.randn(5, 3, 2 if has_values else 4, **options),
        "bias": torch.randn(5, **options),
    }
    found = []
    for matrices in (False, True):
        monkeypatch.setattr("gsa.ops._by_position._prefers_matrices", lambda *_, chosen=matrices: chosen)
        y = gsa.ops.attend_by_position(**tensors, window=window, padding=padding, crop=crop, stride=stride)
        leaves = [tensor for tensor in tensors.values() if tensor is not None]
        found.append([y, *torch.autograd.grad((y * torch.arange(y.numel(), device=device).view_as(y)).sum(), leaves)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("padding, crop, stride", [(0, 0, 1), (2, 0, 3), (1, 2, 2)])
@pytest.mark.parametrize("device", DEVICES)
def test_groups_of_channels_are_maps_that_are_zero_between_them(device, padding, crop, stride):
    options = {"requires_grad": True, "device": device}
    features, scores = torch.randn(2, 4, 2, 6, 7, **options), torch.randn(3, 4, 2, 3, 5, **options)
    maps, bias = torch.randn(6, 3, 2, **options), torch.randn(6, **options)
    zeros = torch.zeros(3, 3, 2, device=device)
    whole = torch.cat((torch.cat((maps[:3], zeros), 2), torch.cat((zeros, maps[3:]), 2)))  # [6, 3, 4]
    window = torch.ones(3, 5, dtype=torch.bool, device=device)
    found = []
    for out, channel_groups in ((whole, 1), (maps, 2)):
        y = gsa.ops.attend_by_position(
            features, scores, window, None, out, bias,
            padding=padding, crop=crop, stride=stride, channel_groups=channel_groups,
        )  # fmt: skip
        weighted = (y * torch.arange(y.numel(), device=device).view_as(y)).sum()
        found.append([y, *torch.autograd.grad(weighted, (features, scores, maps, bias), retain_graph=True)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("batch, side", [(0, 4), (2, 1), (2, 4)])
@pytest.mark.parametrize("heads", [2, 4])
def test_matrices_take_pictures_as_they_lie_in_memory(heads, batch, side):
    made = PosedAttention("R4", 8, 16, heads=heads)
    x = torch.randn(batch, 8, side, side)
    features = made(x)
    assert features.shape == (batch, 16, side, side)
    torch.testing.assert_close(made(x.to(memory_format=torch.channels_last)), features)


@pytest.mark.parametrize("channels, side, chosen", [(16, 8, False), (192, 8, True), (192, 32, False)])
def test_small_maps_of_many_channels_are_multiplied(monkeypatch, channels, side, chosen):
    made = GroupSelfAttention("Z2M", channels, channels, 18, 8, 5, "quadratic", positional_heads=18, border="zeros")
    called = []
    for way in ("multiplied", "convolved"):
        monkeypatch.setattr(f"gsa.ops._by_position.{way}", lambda *_, way=way: called.append(way) or torch.zeros(1))
    made(torch.zeros(1, channels, 2, side, side))
    assert called == ["multiplied" if chosen else "convolved"]
