"""Group self-attention: which functions it can describe, which it cannot, and what it keeps of a picture."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gsa import groups
from gsa.encodings import Neighbourhood, QuadraticEncoding
from gsa.nn import GroupConvolution, GroupSelfAttention, LiftingConvolution
from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._convolutions import as_self_attention, expression_error, pose_dependence, receptive_field
from gsa.symmetry.statements._examples._example import Figures, example
from gsa.symmetry.statements._examples._networks import Classifier
from gsa.symmetry.statements._examples._sources import GROUPS
from gsa.symmetry.statements._kernel_sums import head_residual, kernel_sum_residual, moved_filters, sampled_filters
from gsa.symmetry.statements._told import told_elements
from gsa.symmetry.statements._universality import fit_labels, orbit_gap

__all__ = ["EXAMPLES"]


@example(GROUPS, as_self_attention, expression_error)
def any_convolution() -> Figures:
    """Group self-attention can describe any group convolution, given enough heads, and sharp ones."""
    lifting, picture = LiftingConvolution("R4M", 2, 3, 3), torch.randn(1, 2, 7, 7)
    convolution, feature = GroupConvolution("R4", 2, 3, 3), torch.randn(1, 2, 4, 7, 7)
    other = as_self_attention(convolution)
    other.get_parameter("encoding.offset").data[0].neg_()
    return Figures(
        {"lifting": expression_error(lifting, picture), "group": expression_error(convolution, feature)},
        {
            "heads not sharp": expression_error(convolution, feature, 3.0),
            "a head at another offset": relative_error(other(feature), convolution(feature)),
        },
    )


@example(GROUPS, receptive_field)
def receptive_fields() -> Figures:
    """Attention handles larger receptive fields for no more parameters; convolutions need more."""
    x, sides = torch.randn(1, 4, 4, 9, 9), (3, 7)
    layers = [GroupSelfAttention("R4", 4, 4, 2, 8, side, "functional", "regular") for side in sides]
    convolutions = [GroupConvolution("R4", 4, 4, side, padding=side // 2) for side in sides]
    narrow, wide = (receptive_field(layer, x) for layer in layers)
    return Figures(
        {"parameters, 7×7 less 3×3": _more(*layers), "pixels seen, less 49": float(wide - 49)},
        {"pixels seen, 7×7 less 3×3": float(wide - narrow), "parameters of convolutions": _more(*convolutions)},
    )


@example(GROUPS, pose_dependence)
def summed_form() -> Figures:
    """Only the regular form describes group convolutions: the summed form makes all poses of flat features the same."""
    x = torch.randn(1, 4, 4, 6, 6)
    layers = {form: GroupSelfAttention("R4", 4, 4, 4, 8, 3, "fourier", form) for form in ("summed", "regular")}
    return Figures(
        {"poses of the summed form": pose_dependence(layers["summed"], x)},
        {
            "of the regular form": pose_dependence(layers["regular"], x),
            "of a group convolution": pose_dependence(GroupConvolution("R4", 4, 4, 3), x),
        },
    )


@example(GROUPS, kernel_sum_residual, head_residual, moved_filters, sampled_filters)
def kernel_sums() -> Figures:
    """Between the pixels, heads that are normalised express only kernels whose sums are the same in all poses."""
    turned, interpolated = moved_filters("R4", torch.randn(4, 3, 3)), moved_filters("R8", torch.randn(8, 3, 3))
    sampled = sampled_filters("R8", _random_function(8), 3)
    return Figures(
        {"sums, R4": kernel_sum_residual("R4", turned), "left by 300 heads, R4": head_residual(_heads(300), turned)},
        {
            "left by 4 heads, R4": head_residual(_heads(4), turned),
            "sums of turned filters, R8": kernel_sum_residual("R8", interpolated),
            "of a random function, R8": kernel_sum_residual("R8", sampled),
        },
    )


@example(GROUPS, fit_labels)
def far_apart() -> Figures:
    """What is far apart in a picture is told by global attention, not by windows too small to see it together."""
    pictures = torch.zeros(2, 1, 12, 12)  # of two dots, five pixels apart or more, away from the border
    pictures[:, :, 3, 3] = pictures[0, :, 3, 8] = pictures[1, :, 8, 8] = 1
    windows, everywhere = Classifier("R2", 3), Classifier("R2")
    wrong = 1 - fit_labels(everywhere, pictures, torch.arange(2), steps=200, rate=0.05)
    wrong_of_windows = 1 - fit_labels(windows, pictures, torch.arange(2), steps=5)
    with torch.no_grad():
        logits = windows(pictures)
    return Figures(
        {"wrong labels, global": wrong, "logits, 3×3 windows": relative_error(logits[:1], logits[1:])},
        {"wrong labels, 3×3 windows": wrong_of_windows},
    )


@example(GROUPS, fit_labels, orbit_gap)
def labels_of_orbits() -> Figures:
    """Global group self-attention learns any labels of orbits, and cannot tell the members of one orbit apart."""
    pictures, network, plain = torch.rand(8, 1, 4, 4), Classifier("R4"), Classifier("Z2")
    wrong = 1 - fit_labels(network, pictures, torch.arange(8) // 2, steps=500, rate=0.02)
    pairs = torch.cat((pictures[:2], pictures[:2].rot90(1, (-2, -1))))
    members = 1 - fit_labels(network, pairs, torch.arange(2).repeat_interleave(2), steps=10)
    return Figures(
        {"wrong labels of 8 orbits": wrong, "logits in an orbit": orbit_gap(network, pictures, "R4")},
        {"wrong labels within orbits": members, "logits in an orbit, no poses": orbit_gap(plain, pictures, "R4")},
    )


@example(GROUPS, told_elements)
def told_by_features() -> Figures:
    """Invariance loses how a picture was moved, equivariance keeps it."""
    network, picture, moved_by = Classifier("R4", 3), torch.rand(1, 1, 6, 6), 1
    moved = groups.group("R4").act(picture, moved_by)
    told, left = (told_elements(part, picture, moved, "R4") for part in (network.features, network))
    return Figures(
        {"other turns that features allow": float(len({*told} ^ {moved_by}))},
        {"that logits allow": float(len({*left} - {moved_by}))},
    )


def _more(one: nn.Module, other: nn.Module) -> float:
    """How many parameters more another layer has."""
    first, second = (sum(weight.numel() for weight in layer.parameters()) for layer in (one, other))
    return float(second - first)


def _heads(count: int) -> QuadraticEncoding:
    """Of all sharpnesses, at random places and poses of R4."""
    encoding = QuadraticEncoding(groups.group("R4"), 8, count, Neighbourhood(3))
    nn.init.uniform_(encoding.offset, -2, 2)
    nn.init.uniform_(encoding.raw_sharpness, 1, 10)
    nn.init.normal_(encoding.preference, std=4)
    return encoding


def _random_function(poses: int) -> Callable[[Tensor], Tensor]:
    """Of continuous offsets: cosines, too fast to be alike at two places of the window."""
    frequencies, phases, mix = 6 * torch.randn(64, 2), 6 * torch.rand(64), torch.randn(64, poses)
    return lambda offsets: (offsets @ frequencies.T + phases).cos() @ mix


EXAMPLES = (any_convolution, receptive_fields, summed_form, kernel_sums, far_apart, labels_of_orbits, told_by_features)
