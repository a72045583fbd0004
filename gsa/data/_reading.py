"""How files become the pictures of a data module of somebody's, as it says."""

from collections.abc import Mapping
from typing import Any

from gsa._limits import LIMITS, check_limits
from gsa.files.reading import PictureReader

__all__ = ["reading_of"]

_ASSUMED = {"white": None, "channels": "colour", "framing": "centre"}


def reading_of(data: Any) -> dict[str, Any]:
    """Its `reading`, with what it leaves out: {"white": …, "channels": …, "framing": …}.

    Raises:
        ValueError: another key, or a value that `ImageFolderDataModule` would refuse.
    """
    where, reading = f"{type(data).__name__}.reading", getattr(data, "reading", {})
    if not isinstance(reading, Mapping) or not reading.keys() <= _ASSUMED.keys():
        raise ValueError(f"{where} must be a dictionary of {', '.join(_ASSUMED)}, but got {reading!r}")
    found = _ASSUMED | dict(reading)
    limits = LIMITS["gsa.data.ImageFolderDataModule"]
    try:
        check_limits({name: limits[name] for name, value in reading.items() if value is not None}, found)
        PictureReader(data.image_size, data.in_channels, found["white"], found["channels"] == "pages")
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    return found
