"""How files become the pictures of a data module of somebody's, as it says."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from gsa.files.reading import PictureReader

__all__ = ["reading_of"]

_CHOICES = {"channels": ("colour", "grey", "pages"), "framing": ("centre", "whole")}


def reading_of(data: Any) -> dict[str, Any]:
    """Its `reading`, with what it leaves out: {"white": …, "channels": …, "framing": …}.

    Raises:
        ValueError: another key, or a value that is none of its.
    """
    where, reading = f"{type(data).__name__}.reading", getattr(data, "reading", {})
    if not isinstance(reading, Mapping) or not set(reading) <= {"white", *_CHOICES}:
        raise ValueError(f"{where} must be a dictionary of white, {', '.join(_CHOICES)}, but got {reading!r}")
    found = {"white": reading.get("white")} | {name: reading.get(name, known[0]) for name, known in _CHOICES.items()}
    for name, known in _CHOICES.items():
        if found[name] not in known:
            raise ValueError(f"{where}[{name!r}] must be one of {known}, but got {found[name]!r}")
    if (white := found["white"]) is not None:
        whites = [*white] if isinstance(white, Sequence) else [white]
        if not whites or not all(isinstance(one, Integral) and int(one) > 0 for one in whites):
            raise ValueError(f"{where}['white'] must be a positive integer, or one for each page, but got {white!r}")
        found["white"] = [int(one) for one in whites] if isinstance(white, Sequence) else int(white)
    PictureReader(
        data.image_size, data.in_channels, found["white"], found["channels"] == "pages"
    )  # which refuses others
    return found
