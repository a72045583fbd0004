"""Positional encodings: (group, offsets) → what attention knows of geometry, one kind a file."""

from typing import Any

from gsa import groups
from gsa._checks import check_choice
from gsa.encodings._absolute import AbsoluteEncoding
from gsa.encodings._constant import ConstantEncoding
from gsa.encodings._encoding import FORMS, AdditiveEncoding, Encoded, Encoding
from gsa.encodings._fourier import FourierEncoding
from gsa.encodings._functional import FunctionalEncoding
from gsa.encodings._neighbourhood import Neighbourhood, Rectangle
from gsa.encodings._quadratic import QuadraticEncoding
from gsa.encodings._rotary import RotaryEncoding
from gsa.encodings._table import TableEncoding
from gsa.groups import Group

__all__ = [
    "FORMS",
    "KINDS",
    "AbsoluteEncoding",
    "AdditiveEncoding",
    "ConstantEncoding",
    "Encoded",
    "Encoding",
    "FourierEncoding",
    "FunctionalEncoding",
    "Neighbourhood",
    "QuadraticEncoding",
    "Rectangle",
    "RotaryEncoding",
    "TableEncoding",
    "encoding",
]

KINDS = {
    kind.name: kind
    for kind in (
        FunctionalEncoding,
        TableEncoding,
        FourierEncoding,
        RotaryEncoding,
        QuadraticEncoding,
        ConstantEncoding,
        AbsoluteEncoding,
    )
}


def encoding(
    kind: str | type[Encoding] | Encoding,
    group: Group | str,
    head_dim: int,
    neighbourhood: Neighbourhood,
    form: str = "regular",
    num_heads: int = 1,
) -> Encoding:
    """The encoding of a layer, by name or class; a module is returned as it is, once it is known to fit.

    Args:
        kind: one of `KINDS`, a class like them, or a module, which layers then share.
        group: acts on the offsets; or its name.
        head_dim: d, channels of a head.
        neighbourhood: where the layer attends.
        form: "lifting", "regular" or "summed".
        num_heads: heads of the layer.

    Raises:
        ValueError: unknown name or form; a kind that cannot serve this group, head size, neighbourhood or form; a
            module made for another group, head size or table, or for a lifting layer where this is a group layer, or
            the reverse.
    """
    group = groups.group(group)
    check_choice(FORMS, form=form)
    if not isinstance(kind, Encoding):
        chosen: Any = KINDS.get(kind) if isinstance(kind, str) else kind
        if not (isinstance(chosen, type) and issubclass(chosen, Encoding)):
            raise ValueError(f"encoding must be one of {tuple(KINDS)} or an Encoding module or class, but got {kind!r}")
        kind = chosen.of_layer(group, head_dim, neighbourhood, form, num_heads)
    kind.check_fits(group, head_dim, neighbourhood, form, num_heads)
    return kind
