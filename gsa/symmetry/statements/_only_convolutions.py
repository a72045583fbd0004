"""The group convolution is the only linear equivariant map, where features have no further structure."""

import torch
from torch import Tensor

from gsa import groups
from gsa.groups import Group
from gsa.nn import GroupConvolution
from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._linear_maps import convolution_map

__all__ = ["only_convolutions"]


def only_convolutions(group: Group | str, side: int = 3) -> dict[str, float]:
    """Every linear map of features on a torus that is equivariant to G is a group convolution; there are |G| of them.

        Φ L_σ = L_σ Φ for all σ ∈ G   ⇔   a(σg, σg̃) = a(g, g̃)   ⇔   a(g, g̃) = ψ(g⁻¹g̃)

    A matrix at random, averaged over all of G, is any equivariant map; filters as large as the torus are all group
    convolutions. Source: Kondor & Trivedi 2018, as Romero & Cordonnier 2021 quote it ("the group convolution is the
    only linear group equivariant map").

    Args:
        group: the point group H, on the grid; G is H with the translations of the torus.
        side: of the torus in pixels; odd, so that quarter turns have a pixel for their centre.

    Returns:
        {"elements": |G|; "maps": dimension of the equivariant maps, which is the number of orbits of pairs (g, g̃);
        "convolutions": of the group convolutions; "residual": of an equivariant map at random, what the nearest
        convolution leaves, relative to it; "any map": the same of a map that is not equivariant}.

    Raises:
        ValueError: a group that is not on the grid; an even side.
    """
    group = groups.group(group)
    if not group.is_on_grid or side < 1 or side % 2 == 0:
        raise ValueError(
            f"the group must map the pixels of a torus of an odd side to pixels, but got {group.name} and {side}"
        )
    orders = _orders(group, side)
    any_map = torch.randn(len(orders[0]), len(orders[0]))
    equivariant = torch.stack([any_map[order][:, order] for order in orders]).mean(0)
    pairs = torch.arange(any_map.numel()).view_as(any_map)
    orbits = torch.stack([pairs[order][:, order] for order in orders]).amin(0).unique()
    convolutions = _convolutions(group, side)
    return {
        "elements": float(len(orders)),
        "maps": float(len(orbits)),
        "convolutions": float(torch.linalg.matrix_rank(convolutions)),
        "residual": _left(equivariant, convolutions),
        "any map": _left(any_map, convolutions),
    }


def _orders(group: Group, side: int) -> list[Tensor]:
    """What every element of G makes of the tokens (h, y, x), as int64 [|H|·side²]."""
    tokens = torch.arange(group.order * side**2).view(1, 1, group.order, side, side)
    turned = [group.act(tokens, h) for h in range(group.order)]
    return [t.roll((y, x), (-2, -1)).flatten() for t in turned for y in range(side) for x in range(side)]


def _convolutions(group: Group, side: int) -> Tensor:
    """A column for each entry of a filter as large as the torus: the map's coefficients, [tokens², filters]."""
    convolution = GroupConvolution(group, 1, 1, side, bias=False).requires_grad_(False)
    tokens = group.order * side**2
    one = torch.eye(tokens).view(tokens, 1, group.order, side, side)
    columns = []
    for entry in range(convolution.weight.numel()):
        convolution.weight.zero_().view(-1)[entry] = 1
        columns.append(convolution_map(convolution)(one, one).view(tokens, tokens).T.flatten())
    return torch.stack(columns, dim=1)


def _left(linear_map: Tensor, convolutions: Tensor) -> float:
    """Of a map, what is left by the combination of convolutions that is nearest to it."""
    wanted = linear_map.flatten()[:, None]
    return relative_error(convolutions @ torch.linalg.lstsq(convolutions, wanted).solution, wanted)
