"""Group self-attention is steerable by nature: encodings are evaluated at turned offsets, not interpolated."""

from torch import Tensor, nn

from gsa import groups
from gsa.encodings import Encoding, Neighbourhood
from gsa.groups import Group
from gsa.symmetry._layers import layer_errors
from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._turned import check_kind, encoded_ones, turned_by

__all__ = ["drift_by_depth", "interpolation_errors", "steering_errors"]


def steering_errors(encoding: Encoding, neighbourhood: Neighbourhood, side: int = 5) -> dict[int, float]:
    """Whether the encoding that pose h sees is the encoding function, evaluated at the offsets that h⁻¹ turns.

        ‖ρ_h(u) − ρ_e(h⁻¹u)‖ / ‖ρ_e(h⁻¹u)‖,   e the identity

    Where it is zero, the encoding is defined between the pixels as well, and no angle asks for interpolation
    (Romero & Cordonnier 2021: "group self-attention is steerable by nature"). A rotary encoding has no ρ; there it is
    queries turned by the phases of h⁻¹i.

    Args:
        encoding: any kind but absolute ones, which have no offsets; one that vanishes has no error.
        neighbourhood: the relative positions.
        side: of the map.

    Returns:
        {element index: relative error}.

    Raises:
        ValueError: an absolute encoding.
    """
    check_kind(encoding, "absolute")
    seen = _seen(encoding, neighbourhood, side)
    errors = {}
    for h, inverse in enumerate(encoding.group.matrices[encoding.group.inverse]):
        turned = turned_by(neighbourhood, inverse)
        errors[h] = relative_error(seen[h], _seen(encoding, turned, side)[0])
    return errors


def interpolation_errors(encoding: Encoding, neighbourhood: Neighbourhood) -> dict[int, float]:
    """What is lost where a table of the same encoding is turned, as discrete kernels are, by bilinear interpolation.

        ‖(L_h ρ_e)(u) − ρ_h(u)‖ / ‖ρ_h(u)‖   over the cells u of the window's disk

    Args:
        encoding: one that adds to the keys.
        neighbourhood: a window of pixels.

    Returns:
        {element index: relative error}; rounding for elements that are exact on the grid.

    Raises:
        ValueError: global attention, which has no table; an encoding that adds nothing to the keys.
    """
    check_kind(encoding, "absolute", "rotary")
    side = neighbourhood.size
    if side is None:
        raise ValueError("a table lists the offsets of a window: expected an odd side, but got None (global)")
    seen = _seen(encoding, neighbourhood, side)
    disk = Neighbourhood(side, "disk").mask(side, side, seen.device)
    table = seen[:1].permute(0, 3, 1, 2)  # [1, d, U, V]
    turned = (encoding.group.act(table, h)[0].movedim(0, -1) for h in range(encoding.group.order))
    return {h: relative_error(found[disk], seen[h][disk]) for h, found in enumerate(turned)}


def drift_by_depth(network: nn.Module, x: Tensor, group: Group | str, degrees: float = 45.0) -> dict[str, float]:
    """How far features of a network are from turning with its input by an angle, from layer to layer.

    The encodings are exact at any angle; pictures and features are not, for they are sampled on the grid, and the error
    holds what sampling them by bilinear interpolation loses. See `layer_errors`, of which this is one column.

    Args:
        network, x: as in `layer_errors`.
        group: with this angle among its elements. It need not be the network's own: then features with other poses are
            left out, and what is left are images and logits.
        degrees: counter-clockwise.

    Returns:
        {name of a submodule: relative error}, in the order in which they finish, the network itself last.

    Raises:
        ValueError: an angle that the group does not have.
    """
    group = groups.group(group)
    turn = degrees % 360 * group.rotations / 360
    if not turn.is_integer():
        raise ValueError(f"{group.name} turns by multiples of {360 / group.rotations:g}°, but got {degrees:g}°")
    return {layer: errors[int(turn)] for layer, errors in layer_errors(network, x, group).items()}


def _seen(encoding: Encoding, neighbourhood: Neighbourhood, side: int) -> Tensor:
    """ρ_x as every pose sees it, [|H|, U, V, d]; queries of ones as it turns them, [|H|, side, side, d], if it does."""
    encoded = encoded_ones(encoding, neighbourhood, side)
    return encoded.query[0, :, 0] if encoding.makes_poses_heads else encoded.spatial
