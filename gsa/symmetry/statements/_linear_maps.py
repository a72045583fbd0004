"""Linear maps on a group whose coefficients know relative positions only are equivariant: one statement, four cases."""

import copy
from collections.abc import Callable, Sequence

import numpy
import torch
import torch.nn.functional as F
from torch import Tensor

from gsa import groups
from gsa.groups import Group
from gsa.nn import GroupConvolution, GroupSelfAttention
from gsa.symmetry._norm import relative_error

__all__ = ["LinearMap", "attention_map", "convolution_map", "four_examples", "linear_map_errors", "moves"]

LinearMap = Callable[[Tensor, Tensor], Tensor]
Move = Callable[[Tensor], Tensor]


def linear_map_errors(
    linear_map: LinearMap, content: Tensor, values: Tensor, symmetry: Sequence[Move]
) -> dict[str, float]:
    """Whether a linear map's coefficients are invariant, and whether the map is equivariant: one holds with the other.

        Φ(c, v)(g) = Σ_g̃ a_c(g, g̃) v(g̃)
        a(σg, σg̃) = a(g, g̃)   ⇔   Φ(L_σ c, L_σ v) = L_σ Φ(c, v),   (L_σ v)(g) = v(σ⁻¹g)

    What is linear: a convolution in its features. Self-attention is not, as its weights depend on them; for given
    weights it is linear in its *values*. So a map is given two arguments, the content c from which the weights are
    made and the values v, and is asked to be linear in v. Queries and keys of content know no positions, so all that
    can break a symmetry are the coefficients a of content that is the same everywhere: what the positional encoding
    makes of it. A convolution does not look at c, and its a is its filter at g⁻¹g̃.

    Source: Romero & Cordonnier 2021 ("linear mappings on G, whose positional encoding is G-invariant, are
    G-equivariant"), after Kondor & Trivedi 2018.

    Args:
        linear_map: Φ, of [B, C, M, H, W] twice, to [B, C′, M, H, W].
        content, values: c and v, [B, C, M, H, W].
        symmetry: L_σ of some σ that generate the claimed group, see `moves`.

    Returns:
        The largest over σ of
        "linear": ‖Φ(c, 2v − 3w) − 2Φ(c, v) + 3Φ(c, w)‖ / ‖Φ(c, 2v − 3w)‖ for a w at random;
        "invariant": ‖a(σg, σg̃) − a(g, g̃)‖ / ‖a‖, with the content of one token of c for all;
        "equivariant": ‖Φ(L_σ c, L_σ v) − L_σ Φ(c, v)‖ / ‖Φ(c, v)‖.
    """
    with torch.no_grad():
        other, expected = torch.randn_like(values), linear_map(content, values)
        combined = 2 * expected - 3 * linear_map(content, other)
        errors = {"linear": relative_error(combined, linear_map(content, 2 * values - 3 * other))}
        coefficients = _coefficients(linear_map, content[:1, :, :1, :1, :1].expand_as(content[:1]))
        tokens = torch.arange(values[0, 0].numel(), device=values.device).view(1, 1, *values.shape[2:])
        invariant, equivariant = [], []
        for move in symmetry:
            order = move(tokens).flatten()
            invariant.append(relative_error(coefficients[:, order][..., order], coefficients))
            moved = move(expected)
            equivariant.append(relative_error(linear_map(move(content), move(values)), moved))
    return errors | {"invariant": float(numpy.max(invariant)), "equivariant": float(numpy.max(equivariant))}


def attention_map(layer: GroupSelfAttention) -> LinearMap:
    """Self-attention on a torus as a map of content and values: the layer's first channels ask, its last are carried.

    Args:
        layer: of the regular form, from 2·C channels. Its window is whole at every pixel: the crop is its reach
            (n − 1)/2, or it is global. Not of the quadratic encoding, whose queries and keys are narrower.

    Returns:
        Φ(c, v) = the layer's answer to (c, v) less that to (c, 0), of which W_q and W_k see c, and W_v sees v.

    Raises:
        ValueError: another form, another crop, heads without content, or the quadratic encoding.
    """
    if layer.form != "regular" or layer.crop != (layer.neighbourhood.size or 1) // 2:
        raise ValueError(
            'the layer must be of form="regular", and its crop the reach (n − 1)/2 of its window, or 0 if global, but '
            f"got {layer}"
        )
    if layer.query_key_value is None or layer.encoding.key_dim != layer.head_dim:
        raise ValueError(f"queries, keys and values must be of equal size, as quadratic ones are not, but got {layer}")
    layer = copy.deepcopy(layer)
    assert layer.query_key_value is not None
    channels = layer.in_channels // 2
    with torch.no_grad():
        *query_and_key, value = layer.query_key_value.weight.chunk(3)
        for weight in query_and_key:
            weight[:, channels:] = 0
        value[:, :channels] = 0

    def answer(content: Tensor, values: Tensor) -> Tensor:
        return layer(_around(torch.cat((content, values), dim=1), layer.crop))

    return lambda content, values: answer(content, values) - answer(content, torch.zeros_like(values))


def convolution_map(convolution: GroupConvolution) -> LinearMap:
    """A convolution on a torus as a map of content, which it does not look at, and values.

    Args:
        convolution: without padding and bias, of an odd side.
    """
    return lambda _, values: convolution(_around(values, convolution.kernel_size // 2))


def moves(symmetry: str, group: Group | str, side: int) -> list[Move]:
    """Generators of a symmetry of features [B, C, |H|, side, side] on a torus.

    Args:
        symmetry: "translations", "permutations" (of all pixels, one at random) or "group" (translations and H).
        group: the point group H, or its name; on the grid.
        side: pixels; odd, so that quarter turns have a pixel for their centre.

    Raises:
        ValueError: another symmetry; "group" with a group that is not on the grid.
    """
    group = groups.group(group)
    translations: list[Move] = [lambda x: x.roll(1, -1), lambda x: x.roll(1, -2)]
    if symmetry == "translations":
        return translations
    if symmetry == "group":
        if not group.is_on_grid:
            raise ValueError(f"the group must map pixels to pixels, but {group.name} does not")
        return [*translations, *(lambda x, h=h: group.act(x, h) for h in range(1, group.order))]
    if symmetry == "permutations":
        order = torch.randperm(side**2)
        return [lambda x: x.flatten(-2)[..., order.to(x.device)].view_as(x)]
    raise ValueError(f'symmetry must be "translations", "permutations" or "group", but got {symmetry!r}')


def four_examples(channels: int = 2, group: Group | str = "R4") -> dict[str, tuple[LinearMap, str, str]]:
    """The four examples of the statement, with random weights: name → (map, claimed symmetry, group of its features).

    Self-attention with a relative positional encoding (translations) and with a constant one (permutations of all
    pixels), convolution (translations), group convolution (the group).

    Args:
        channels: C, of content and of values.
        group: of the fourth; on the grid.
    """
    name = groups.group(group).name
    relative = GroupSelfAttention("Z2", 2 * channels, channels, 2, 6, 3, "fourier", "regular", crop=1)
    constant = GroupSelfAttention("Z2", 2 * channels, channels, 2, 6, None, "constant", "regular")
    return {
        "self-attention, relative encoding": (attention_map(relative), "translations", "Z2"),
        "self-attention, constant encoding": (attention_map(constant), "permutations", "Z2"),
        "convolution": (_random_convolution("Z2", channels), "translations", "Z2"),
        "group convolution": (_random_convolution(name, channels), "group", name),
    }


def _random_convolution(group: str, channels: int) -> LinearMap:
    return convolution_map(GroupConvolution(group, channels, channels, 3, bias=False))


def _around(x: Tensor, reach: int) -> Tensor:
    """What leaves on one side comes in on the other: [..., H, W] → [..., H + 2·reach, W + 2·reach]."""
    return F.pad(x, (reach,) * 4 + (0, 0), mode="circular")


def _coefficients(linear_map: LinearMap, content: Tensor) -> Tensor:
    """a_c(g, g̃): the map of one value after the other, [C′, tokens, C, tokens]."""
    channels, tokens = content.shape[1], content[0, 0].numel()
    one = torch.eye(channels * tokens, dtype=content.dtype, device=content.device)
    found = linear_map(content.expand(len(one), *content.shape[1:]), one.view(-1, *content.shape[1:]))
    return found.flatten(2).flatten(1).T.reshape(found.shape[1], -1, channels, tokens)
