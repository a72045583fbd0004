"""Which layers commute with translations away from the border, and which see the border from everywhere."""

import math

import pytest
import torch

import gsa
from gsa.encodings import KINDS
from gsa.nn import (
    AttentionBlock,
    AttentionOptions,
    AttentiveConvolution,
    ChannelNorm,
    GroupConvolution,
    GroupSelfAttention,
    LiftingConvolution,
    LiftingSelfAttention,
    PlainBlock,
    PosedAttention,
    norm,
)
from gsa.symmetry import translation_error

pytestmark = pytest.mark.usefixtures("float64")
OPTIONS = AttentionOptions(num_heads=2, head_dim=8, neighbourhood=3)


def block(kind, of=AttentionBlock):
    return of("R4", 4, 4, OPTIONS, "regular", norm=kind)


def attention(encoding, form="regular"):
    return GroupSelfAttention("R4", 4, 4, 2, 8, 3, encoding, form)


EXACT = {
    **{f"lifting, {kind}": lambda kind=kind: LiftingSelfAttention("R4", 4, 4, 2, 8, 3, kind) for kind in KINDS},
    **{f"group attention, {kind}": lambda kind=kind: attention(kind) for kind in KINDS},
    **{
        f"global attention, {kind}": lambda kind=kind: GroupSelfAttention("R4", 4, 4, 2, 8, None, kind, "regular")
        for kind in ("constant", "quadratic", "functional", "fourier", "rotary")
    },
    "summed": lambda: attention("functional", "summed"),
    "posed attention": lambda: PosedAttention("R4", 4, 4),
    "lifting convolution": lambda: LiftingConvolution("R4", 4, 4, 3, padding=1),
    "group convolution": lambda: GroupConvolution("R4", 4, 4, 3, padding=1),
    "norm=channel": lambda: ChannelNorm(4),
    "norm=batch": lambda: norm("batch", 4),  # its statistics are kept: in eval mode it is pointwise
    "block, norm=channel": lambda: block("channel"),
    "block, norm=batch": lambda: block("batch"),
    "plain block, norm=batch": lambda: block("batch", PlainBlock),
}
FAR = {  # what is shared by a whole sample holds what a translation brings in and takes out at the border
    "lifting, absolute": EXACT.pop("lifting, absolute"),
    "group attention, absolute": EXACT.pop("group attention, absolute"),
    **{
        f"global attention, {kind}": EXACT.pop(f"global attention, {kind}")
        for kind in ("functional", "fourier", "rotary")
    },
    "block, norm=sample": lambda: block("sample"),
    "plain block, norm=sample": lambda: block("sample", PlainBlock),
    "attentive convolution": lambda: torch.nn.Sequential(
        torch.nn.ZeroPad2d(1), AttentiveConvolution("R4", 4, 4, 3, hidden=4)
    ),
}


def error(make):
    layer = make().eval()
    images = isinstance(layer, LiftingSelfAttention | LiftingConvolution | PosedAttention)
    x = torch.randn(1, 4, *(() if images else (4,)), 20, 18)
    return translation_error(layer, x, shift=(2, -1), margin=6)


@pytest.mark.parametrize("name", EXACT)
def test_commutes_with_translations(name):
    assert error(EXACT[name]) < 1e-13


@pytest.mark.parametrize("name", FAR)
def test_planted_sees_the_border(name):
    found = error(FAR[name])
    assert found > 1e-4


def spectrogram(pitches, semitones=0.0):
    """Tones of four partials each on a logarithmic axis, twelve bins an octave: [1, 1, bins, time]."""
    bins, time = torch.arange(96.0)[:, None, None], torch.arange(12.0)
    partials = 12 * torch.arange(1.0, 5.0).log2()[:, None]
    places = torch.tensor(pitches)[None, :, None] + semitones + partials[:, :, None]  # [partials, tones, 1]
    peaks = (-((bins[..., None] - places) ** 2) / 2).exp().sum(1)  # [bins, tones, 1]
    tones = (-((time - 4.0 * torch.arange(len(pitches))[:, None]) ** 2) / 4).exp()
    return (peaks.squeeze(-1) @ tones)[None, None]


@pytest.mark.parametrize("semitones", [1, 5, 12])
def test_a_change_of_pitch_is_a_translation_of_the_logarithmic_axis(semitones):
    """Which a relative encoding keeps; planted: positions that are absolute."""
    low, high = spectrogram([20.0, 27.0, 24.0]), spectrogram([20.0, 27.0, 24.0], semitones)
    torch.testing.assert_close(high[..., semitones:, :], low[..., :-semitones, :])
    inner = slice(20, 70)
    for kind, holds in (("fourier", True), ("absolute", False)):
        layer = LiftingSelfAttention("Z2", 1, 4, 2, 8, 3, kind).eval()
        heard, expected = layer(high)[..., inner, :], layer(low).roll(semitones, -2)[..., inner, :]
        assert (gsa.symmetry.relative_error(heard, expected) < 1e-13) is holds, kind


def around(steps=(0, 0)):
    """Three spots, seen in circles around the origin, twelve an octave, at 24 angles: [1, 2, circles, angles].

    Scaled by 2^(steps[0] / 12) and turned by steps[1] · 15°.
    """
    radius = 2 ** ((torch.arange(60.0) - steps[0]) / 12)
    angle = (torch.arange(24.0) - steps[1]) * math.tau / 24
    x = torch.stack([radius[:, None] * angle.cos(), radius[:, None] * angle.sin()])
    spots = torch.tensor([[3.0, 1.0], [-2.0, 4.0], [0.0, -6.0]])[..., None, None]
    return (-(x - spots).square().sum(1) / 2).exp().sum(0).expand(1, 2, -1, -1)


@pytest.mark.parametrize("steps", [(3, 0), (12, 0), (0, 6), (7, -4)])
def test_a_scaling_is_a_translation_of_the_logarithm_of_the_radius(steps):
    """And a turn one of the angle, all around; planted: positions that are absolute."""
    here, there = around(), around(steps)
    torch.testing.assert_close(there[..., steps[0] :, :], here.roll(steps, (-2, -1))[..., steps[0] :, :])
    for kind, holds in (("fourier", True), ("absolute", False)):
        layer = LiftingSelfAttention("Z2", 2, 4, 2, 8, 3, kind).eval()
        seen, expected = (layer(torch.cat([x, x, x], -1))[..., 24:48] for x in (there, here))  # all around
        seen, expected = seen[..., 15:45, :], expected.roll(steps, (-2, -1))[..., 15:45, :]
        assert (gsa.symmetry.relative_error(seen, expected) < 1e-13) is holds, kind
