"""Positional encodings: (group, offsets) → what attention knows of geometry, one kind a file."""

from gsa.encodings._absolute import AbsoluteEncoding
from gsa.encodings._constant import ConstantEncoding
from gsa.encodings._encoding import AdditiveEncoding, Encoding
from gsa.encodings._fourier import FourierEncoding
from gsa.encodings._functional import FunctionalEncoding
from gsa.encodings._neighbourhood import Neighbourhood
from gsa.encodings._rotary import RotaryEncoding
from gsa.encodings._table import TableEncoding
from gsa.groups import Group

__all__ = [
    "AbsoluteEncoding",
    "AdditiveEncoding",
    "ConstantEncoding",
    "Encoding",
    "FourierEncoding",
    "FunctionalEncoding",
    "Neighbourhood",
    "RotaryEncoding",
    "TableEncoding",
    "encoding",
]

_KINDS = {
    "functional": lambda group, d, neighbourhood, poses: FunctionalEncoding(group, d, poses),
    "table": lambda group, d, neighbourhood, poses: TableEncoding(group, d, neighbourhood, poses),
    "fourier": lambda group, d, neighbourhood, poses: FourierEncoding(group, d, poses),
    "rotary": lambda group, d, neighbourhood, poses: RotaryEncoding(group, d, poses),
    "constant": lambda group, d, neighbourhood, poses: ConstantEncoding(group, d),
    "absolute": lambda group, d, neighbourhood, poses: AbsoluteEncoding(group, d),
}


def encoding(
    kind: str | Encoding, group: Group, head_dim: int, neighbourhood: Neighbourhood, poses: bool = True
) -> Encoding:
    """Build an encoding by name; a module is returned as it is, once it is known to fit.

    Args:
        kind: "functional", "table", "fourier", "rotary", "constant", "absolute", or a module.
        group: acts on the offsets.
        head_dim: d, channels of a head.
        neighbourhood: where the layer attends.
        poses: whether keys have poses (group layers) or not (lifting).

    Raises:
        ValueError: unknown name; a kind that cannot serve this group, head size or neighbourhood; a module made
            for another group, head size or table, or with poses for a lifting layer.
    """
    if isinstance(kind, Encoding):
        if kind.group != group or kind.head_dim != head_dim:
            raise ValueError(
                f"the encoding must be made for this layer's group and head_dim ({group.name}, {head_dim}), "
                f"but was made for ({kind.group.name}, {kind.head_dim})"
            )
        if isinstance(kind, TableEncoding) and kind.side != neighbourhood.size:
            raise ValueError(
                f"the table must list this layer's neighbourhood ({neighbourhood.size}), "
                f"but lists {kind.side}×{kind.side}"
            )
        if not poses and getattr(kind, "pose_vectors", None) is not None:
            raise ValueError("a lifting layer has no key poses: its encoding must be made with poses=False")
        return kind
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"encoding must be one of {tuple(_KINDS)} or an Encoding module, but got {kind!r}")
    return _KINDS[kind](group, head_dim, neighbourhood, poses)
