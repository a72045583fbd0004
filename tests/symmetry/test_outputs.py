"""What a network returns, judged as a whole: several tensors, whole and complex numbers, shapes of two meanings."""

import pytest
import torch
from torch import nn

from gsa.symmetry import LayerReport, Shifts, TokenPermutations, equivariance_error, gradient_errors

X = torch.rand(2, 1, 8, 8).double()


class Sound(nn.Module):
    """Invariant under everything that moves pixels."""

    def __init__(self):
        super().__init__()
        self.maps, self.head = nn.Conv2d(1, 4, 1), nn.Linear(4, 3)
        self.double()

    def forward(self, x):
        return self.head(self.maps(x).relu().mean((2, 3)))


class Upright(nn.Module):
    """Sees which pixel is which."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(64, 3).double()

    def forward(self, x):
        return self.head(x.flatten(1))


class Both(nn.Module):
    def __init__(self, answer):
        super().__init__()
        torch.manual_seed(0)
        self.sound, self.upright, self.answer = Sound(), Upright(), answer

    def forward(self, x):
        return self.answer(self.sound(x), self.upright(x))


@pytest.mark.parametrize("answer", [
    lambda sound, upright: [(sound, upright)],
    lambda sound, upright: {"logits": sound, "label": (1000 * upright).long()},
    lambda sound, upright: {"label": (1000 * upright).long(), "logits": sound},
    lambda sound, upright: [sound, torch.fft.fft(upright)],
    lambda sound, upright: {"all": [sound, {"inside": (None, upright)}]},
    lambda sound, upright: upright[:, 0],
])  # fmt: skip
def test_one_broken_tensor_of_several_breaks_the_whole(answer):
    network = Both(answer)
    errors = equivariance_error(network, X, "R4")
    assert errors[1] > 0.1 and errors[0] == 0
    report = LayerReport.of(network, X, "R4")
    assert report.errors["Both"] == errors and report.first_broken[0] == "upright.head" and report.broken == [1, 2, 3]


def test_what_a_tuple_holds_behind_its_first_tensor_is_said_not_to_be_judged():
    report = LayerReport.of(Both(lambda sound, upright: (sound, upright)), X, "R4")
    assert report.broken == [] and "of the tuple that Both returns, only what comes first is judged, not [2, 3]" in str(
        report
    )
    assert "tuple" not in str(LayerReport.of(Both(lambda sound, upright: (sound, None, "words")), X, "R4"))


def test_each_of_several_has_to_depend_on_the_input():
    for measure in (equivariance_error, LayerReport.of, gradient_errors):
        with pytest.raises(ValueError, match="Both, output 1, returns the same whatever it is given"):
            measure(Both(lambda sound, upright: [sound, upright * 0]), X, "R4")
    with pytest.raises(ValueError, match="returns the same whatever it is given"):
        equivariance_error(lambda x: torch.ones(len(x), 3), (X * 255).to(torch.uint8), "R4")


def test_one_number_for_each_picture_is_invariant():
    network = Both(lambda sound, upright: sound[:, 0])
    for symmetry in ("R4", Shifts((2, 1))):
        assert max(equivariance_error(network, X, symmetry).values()) < 1e-12
        assert max(gradient_errors(network, X, symmetry)["the input"].values()) < 1e-12


def test_layers_of_complex_numbers_are_judged():
    network = nn.Sequential(Spectrum(), nn.Identity(), Magnitude(), nn.Flatten(), nn.Linear(64, 2)).double()
    report = LayerReport.of(network, X, "R4M")
    assert not report.unjudged and {"0", "1", "2"} <= report.errors.keys()


class Spectrum(nn.Module):
    def forward(self, x):
        return torch.fft.fft2(x)


class Magnitude(nn.Module):
    def forward(self, x):
        return x.abs()


@pytest.mark.parametrize("channels", [7, 8])
def test_channels_may_come_last_where_there_are_as_many_as_rows(channels):
    """As in a ConvNeXt, whose norms see [B, h, w, C]."""

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.norm = nn.Conv2d(1, channels, 1), nn.LayerNorm(channels)
            self.head = nn.Linear(64 * channels, 3)

        def forward(self, x):
            return self.head(self.norm(self.stem(x).movedim(1, -1)).flatten(1))

    report = LayerReport.of(Last().double(), X, "R4")
    assert report.worst("norm") < 1e-12 and "first broken between norm and head" in str(report)


def test_maps_of_attention_are_not_blamed_for_what_a_later_layer_breaks():
    """[B, heads, N, N] are read as pictures, which they are not; what is made of them keeps the symmetry."""

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches, self.projection = nn.AvgPool2d(2), nn.Linear(1, 6)
            self.weights, self.values, self.head = nn.Softmax(-1), nn.Linear(3, 3), nn.Linear(48, 2)

        def forward(self, x):
            q, k = self.projection(self.patches(x).flatten(2).mT).chunk(2, dim=-1)
            weights = self.weights((q @ k.mT)[:, None])[:, 0]
            return self.head(self.values(weights @ k).flatten(1))

    report = LayerReport.of(Attention().double(), X, "R4")
    assert "values, which comes later, keeps it: if it is made of weights" in str(report)
    assert "no map of the input, head is the first that breaks it" in str(report)


def test_larger_maps_are_shifted_by_more():
    assert max(equivariance_error(nn.Upsample(scale_factor=2), X, Shifts((1, 0), (2, 3), margin=2)).values()) == 0
    assert equivariance_error(lambda x: nn.functional.interpolate(x, scale_factor=2).cumsum(-1), X, Shifts((0, 1)))[0]


def test_what_cannot_be_moved_is_said_of_the_symmetry_that_was_asked_for():
    with pytest.raises(ValueError, match="with shifts by multiples of p, a p-th of them; but it returns the shape"):
        equivariance_error(nn.MaxPool2d(2), X, Shifts((1, 0)))
    with pytest.raises(ValueError, match=r"can move: \[B\] or \[B, K\], or as many tokens"):
        equivariance_error(lambda x: torch.rand(2, 7, 3), torch.rand(2, 3, 4), TokenPermutations([1, 0, 2]))


@pytest.mark.filterwarnings("ignore:.torch.jit.trace")
def test_layers_are_those_of_a_module_as_it_was_written():
    for other in (torch.sin, torch.jit.trace(Sound(), X)):
        for measure in (LayerReport.of, gradient_errors):
            with pytest.raises(ValueError, match="layers are those of an nn.Module, as it was written, but got"):
                measure(other, X, "R4")


def test_gradients_are_judged_where_none_are_taken_and_layers_are_not_yet_made():
    network = Sound()
    network.unused = nn.LazyLinear(3)
    with torch.inference_mode():
        assert not LayerReport.of(network, X, "R4", backward=True).broken


def test_maps_of_few_numbers_are_in_no_other_order():
    """Planted: a convolution that turns with nothing, of five hundred maps of a single pixel."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 512, 8), nn.Flatten()).bfloat16()
    assert "in another order" not in str(LayerReport.of(network, X[:1].bfloat16(), "R4"))
