"""Whether data are those that a checkpoint was trained on."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from gsa.files import printable

__all__ = ["refuse_other_classes", "refuse_other_pictures", "refuse_other_size", "warn_of_another_test"]

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


def refuse_other_size(checkpoint: dict[str, Any], path: str, size: int, has_key: bool) -> None:
    """Compare the side of the pictures of a checkpoint, where it says so, with that of the data.

    Args:
        checkpoint, path: of the trained network, which sees other details in pictures of another size.
        size: of the data's pictures, in pixels.
        has_key: whether data.size sets it.

    Raises:
        ValueError: another one.
    """
    pictures = checkpoint.get("pictures")
    there = pictures.get("image_size") if isinstance(pictures, dict) else None
    if not isinstance(there, int) or there == size:
        return
    found = f"data.size is {size}: say data.size={there}" if has_key else f"those of the data have {size}"
    raise ValueError(f"the checkpoint {path} was trained on pictures of {there} pixels, but {found}")


def refuse_other_pictures(checkpoint: dict[str, Any], path: str, digests: Mapping[str, str]) -> None:
    """Compare the digests of the parts that a checkpoint was trained on, where it has them, with those of the data.

    Raises:
        ValueError: naming the parts that differ.
    """
    if differing := _differing(checkpoint, digests):
        raise ValueError(
            f"a run goes on with the pictures that it began with, but since the checkpoint {path} files of the parts "
            f"{', '.join(differing)} were added, removed or renamed (or, of folders without val or with copies, "
            "divided as before 26 November 2026): put them back, or begin in another folder (hydra.run.dir)"
        )


def warn_of_another_test(checkpoint: dict[str, Any], path: str, digests: Mapping[str, str]) -> None:
    """Of files that have changed since a checkpoint was trained: the test part may hold what it was trained on."""
    if "test" in _differing(checkpoint, digests):
        warnings.warn(
            f"the files of the test part are others than when {path} was trained: of folders that were divided anew, "
            "some may have been trained on",
            stacklevel=2,
        )


def _differing(checkpoint: dict[str, Any], digests: Mapping[str, str]) -> list[str]:
    """Parts of which both say what they hold, and not the same."""
    there = checkpoint.get("digests", {})
    return [part for part in there if there[part] != digests.get(part)]


def _named(names: Sequence[str], others: Sequence[str]) -> str:
    """The names that others lack."""
    alone = [repr(printable(str(name))) for name in names if name not in others]
    more = f" and {len(alone) - _SHOWN} more" if len(alone) > _SHOWN else ""
    return ", ".join(alone[:_SHOWN]) + more or "none"
