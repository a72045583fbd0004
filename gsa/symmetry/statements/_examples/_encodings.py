"""Group self-attention: what its positional encodings have to be, and what turns with them."""

from collections.abc import Mapping
from typing import Any

import numpy
import torch
from torch import Tensor

from gsa import encodings, groups
from gsa.encodings import Encoding, Neighbourhood
from gsa.nn import GroupConvolution, GroupSelfAttention, LiftingSelfAttention, SelfAttention
from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._concatenation import by_concatenation, concatenation_error
from gsa.symmetry.statements._examples._example import Figures, example
from gsa.symmetry.statements._examples._networks import Classifier
from gsa.symmetry.statements._examples._sources import GROUPS
from gsa.symmetry.statements._linear_maps import (
    LinearMap,
    attention_map,
    convolution_map,
    four_examples,
    linear_map_errors,
    moves,
)
from gsa.symmetry.statements._only_convolutions import only_convolutions
from gsa.symmetry.statements._steerability import drift_by_depth, interpolation_errors, steering_errors
from gsa.symmetry.statements._uniqueness import closest_encodings, encoding_vectors

__all__ = ["EXAMPLES"]

_SIDE, _WINDOW = 5, Neighbourhood(5)


@example(GROUPS, by_concatenation, concatenation_error)
def three_steps() -> Figures:
    """Only the positional encoding is geometric: act on it with every pose, attend with each, join the responses."""
    sizes, picture, feature = ("R4", 2, 3, 2, 8, 3, "fourier"), torch.randn(1, 2, 5, 5), torch.randn(1, 2, 4, 5, 5)
    lifting = LiftingSelfAttention(*sizes)
    zeros = {"lifting": concatenation_error(lifting, picture)}
    for form in ("regular", "summed"):
        zeros[form] = concatenation_error(GroupSelfAttention(*sizes, form), feature)
    constant = by_concatenation(LiftingSelfAttention("R4", 2, 3, 2, 8, 3, "constant"), picture)
    zeros["poses apart, constant encoding"] = _apart(constant)
    poses = _apart(by_concatenation(lifting, picture))
    return Figures(
        zeros,
        {
            "poses apart": poses,
            "an encoding that no pose acts upon": concatenation_error(_not_acted_upon(lifting), picture),
        },
    )


@example(GROUPS, linear_map_errors, four_examples, moves, attention_map)
def invariant_encodings() -> Figures:
    """Linear maps whose encoding is invariant are equivariant: convolution, and attention, linear in its values."""
    zeros = {name: _largest(_errors(*which)) for name, which in four_examples().items()}
    regular = GroupSelfAttention("R4", 4, 2, 2, 6, 3, "fourier", "regular", crop=1)
    zeros["group self-attention"] = _largest(_errors(attention_map(regular), "group", "R4"))
    absolute = GroupSelfAttention("Z2", 4, 2, 2, 6, 3, "absolute", "regular", crop=1)
    errors = _errors(attention_map(absolute), "translations", "Z2")
    return Figures(
        zeros,
        {f"absolute encoding, {name}": errors[name] for name in ("invariant", "equivariant")},
    )


@example(GROUPS, only_convolutions)
def convolutions_alone() -> Figures:
    """The group convolution is the only linear equivariant map."""
    found = only_convolutions("R4")
    return Figures(
        {
            "left of an equivariant map": found["residual"],
            "maps that are no convolutions": found["maps"] - found["convolutions"],
        },
        {"left of any map": found["any map"]},
    )


@example(GROUPS, linear_map_errors, attention_map, convolution_map)
def linear_in_values() -> Figures:
    """Self-attention describes more than convolutions: it is linear in its values, not in its features."""
    layer = GroupSelfAttention("Z2", 4, 4, 2, 6, 3, "fourier", "regular", crop=1)
    convolution = GroupConvolution("Z2", 2, 2, 3, bias=False)
    features = _errors(lambda _, x: layer(torch.nn.functional.pad(x.repeat(1, 2, 1, 1, 1), (1, 1, 1, 1))))
    return Figures(
        {
            "attention in its values": _errors(attention_map(layer))["linear"],
            "convolution in its features": _errors(convolution_map(convolution))["linear"],
        },
        {"attention in its features": features["linear"]},
    )


@example(GROUPS, closest_encodings, encoding_vectors)
def unique_encodings() -> Figures:
    """For most expressiveness no two elements (offset, pose) of the group share an encoding."""
    contrasts = {name: closest_encodings(_encoding(name), _WINDOW) for name in ("functional", "fourier", "quadratic")}
    contrasts["table"] = closest_encodings(_encoding("table", "R4"), _WINDOW)
    constant = _encoding("constant")
    vectors = encoding_vectors(constant, _WINDOW)
    return Figures(
        {
            "constant, closest two": closest_encodings(constant, _WINDOW),
            "constant, all offsets": relative_error(vectors, vectors[:1].expand_as(vectors)),
        },
        contrasts,
    )


@example(GROUPS, steering_errors, interpolation_errors)
def steerable() -> Figures:
    """Group self-attention is steerable: encodings are evaluated where a pose looks; tables have to be interpolated."""
    names = ("functional", "fourier", "quadratic")
    made = {name: _encoding(name) for name in names}
    tables = {name: interpolation_errors(encoding, _WINDOW) for name, encoding in made.items()}
    zeros = {name: _largest(steering_errors(encoding, _WINDOW)) for name, encoding in made.items()}
    quarters = _largest({(name, h): errors[h] for name, errors in tables.items() for h in (0, 2, 4, 6)})
    return Figures(
        zeros | {"tables turned by 90°": quarters},
        {f"{name} table turned by 45°": errors[1] for name, errors in tables.items()},
    )


@example(GROUPS, drift_by_depth)
def drift_with_depth() -> Figures:
    """Pictures are sampled: features drift with depth at 45°, and not at 90°."""
    network, picture = Classifier("R8", 3), torch.zeros(1, 1, 10, 10)
    picture[..., 3:7, 3:7] = torch.rand(4, 4)
    quarter, eighth = (drift_by_depth(network, picture, "R8", degrees) for degrees in (90, 45))
    layers = ("lifting", "block", list(eighth)[-1])
    names = ("lifting", "block", "logits")
    return Figures(
        {f"{name}, 90°": quarter[layer] for name, layer in zip(names, layers, strict=True)},
        {f"{name}, 45°": eighth[layer] for name, layer in zip(names, layers, strict=True)},
    )


def _errors(linear_map: LinearMap, symmetry: str = "translations", group: str = "Z2") -> dict[str, float]:
    """Of a map of two channels on a torus."""
    content, values = torch.randn(2, 1, 2, groups.group(group).order, _SIDE, _SIDE)
    return linear_map_errors(linear_map, content, values, moves(symmetry, group, _SIDE))


def _largest(errors: Mapping[Any, float]) -> float:
    return float(numpy.max([*errors.values()]))  # NaN where one is


def _encoding(kind: str, group: str = "R8") -> Encoding:
    return encodings.encoding(kind, groups.group(group), 12, _WINDOW, "regular", 9)


def _apart(features: Tensor) -> float:
    """How far poses are from their mean."""
    return relative_error(features.mean(2, keepdim=True).expand_as(features), features)


def _not_acted_upon(layer: SelfAttention) -> SelfAttention:
    """Whose poses all see the encoding as the identity's does."""
    poses = layer.group.order
    layer.encoding.inverse_matrices = torch.eye(2).expand(poses, 2, 2).clone()
    return layer


EXAMPLES = (
    three_steps,
    invariant_encodings,
    convolutions_alone,
    linear_in_values,
    unique_encodings,
    steerable,
    drift_with_depth,
)
