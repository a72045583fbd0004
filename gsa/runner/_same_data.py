"""Whether data are those that a checkpoint was trained on."""

import warnings
from collections.abc import Container, Mapping, Sequence
from typing import Any

from gsa.files import printable

__all__ = ["refuse_other_classes", "refuse_other_format", "refuse_other_pictures", "warn_of_another_test"]

_SHOWN = 5  # names of a message


def refuse_other_classes(checkpoint: dict[str, Any], path: str, classes: Sequence[str]) -> None:
    """Compare the classes of a checkpoint, where it names them, with those of the data.

    Raises:
        ValueError: naming those that only one has.
    """
    pictures, here = checkpoint.get("pictures"), list(classes)
    there = pictures.get("classes") if isinstance(pictures, dict) else None
    if not isinstance(there, list) or there == here:
        return
    found = [f"{_named(there, here)} there alone", f"{_named(here, there)} here alone"]
    differing = "they have another order" if set(there) == set(here) else ", ".join(found)
    raise ValueError(f"the checkpoint {path} was trained on other classes than those of the data: {differing}")


def refuse_other_format(checkpoint: dict[str, Any], path: str, here: Mapping[str, Any], keys: Container[str]) -> None:
    """Compare how a checkpoint was shown its pictures, where it says so, with how those of the data are read.

    Args:
        checkpoint, path: of the trained network, which sees other details in pictures of another size.
        here: the format of the data's pictures.
        keys: that the configuration of the data has.

    Raises:
        ValueError: another side, or another white.
    """
    there = checkpoint.get("pictures")
    if not isinstance(there, dict) or "image_size" not in there:
        return
    if (side := there["image_size"]) != (found := here["image_size"]):
        differs = f"data.size is {found}: say data.size={side}" if "size" in keys else f"those of the data have {found}"
        raise ValueError(f"the checkpoint {path} was trained on pictures of {side} pixels, but {differs}")
    white, found = ("null" if value is None else value for value in (there.get("white"), here.get("white")))
    if "white" in keys and white != found:
        raise ValueError(
            f"the checkpoint {path} was trained with data.white={white}, but it is {found} here: say data.white={white}"
        )


def refuse_other_pictures(checkpoint: dict[str, Any], path: str, data: Any) -> None:
    """Compare the digests of the parts that a checkpoint was trained on, where it has them, with those of the data.

    Args:
        checkpoint, path: of the run.
        data: that have been set up, as `gsa.data` describes them.

    Raises:
        ValueError: naming the parts that differ.
    """
    if differing := _differing(checkpoint, data):
        raise ValueError(
            f"a run goes on with the pictures that it began with, but since the checkpoint {path} files of the parts "
            f"{', '.join(differing)} were added, removed, renamed or replaced (or divided as earlier versions did: "
            "folders without val or with copies until 26 November 2026, with data.groups until 27 November): put them "
            "back, or begin in another folder (hydra.run.dir)"
        )


def warn_of_another_test(checkpoint: dict[str, Any], path: str, data: Any) -> None:
    """Of files that have changed since a checkpoint was trained: the test part may hold what it was trained on."""
    if "test" in _differing(checkpoint, data):
        warnings.warn(
            f"the files of the test part are others than when {path} was trained: of folders that were divided anew, "
            "some may have been trained on",
            stacklevel=2,
        )


def _differing(checkpoint: dict[str, Any], data: Any) -> list[str]:
    """Parts that both tell of, and not the same; of a checkpoint that tells of none, those that are drawn anew."""
    there = checkpoint.get("digests")
    if there is None:  # until 23 November 2026
        return list(data.redrawn)
    return [part for part in there if there[part] != data.digests.get(part)]


def _named(names: Sequence[str], others: Sequence[str]) -> str:
    """The names that others lack."""
    alone = [repr(printable(str(name))) for name in names if name not in others]
    more = f" and {len(alone) - _SHOWN} more" if len(alone) > _SHOWN else ""
    return ", ".join(alone[:_SHOWN]) + more or "none"
