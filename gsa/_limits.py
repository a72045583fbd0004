"""Values that targets refuse, known before these are imported; our data look at the same limits."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

__all__ = [
    "AUGMENTATIONS",
    "DIGITS",
    "FOLDERS",
    "LIMITS",
    "PICTURES",
    "ROTMNIST",
    "SPLIT",
    "Limit",
    "check_groups",
    "check_limits",
]


@dataclass(frozen=True)
class Limit:
    """What a value of the right type has to be.

    Args:
        rule: in words, as "must be at least 1".
        holds: whether a plain value is within it.
    """

    rule: str
    holds: Callable[[Any], bool]


def check_limits(limits: Mapping[str, Limit], values: Mapping[str, Any]) -> None:
    """Look at arguments of a target.

    Args:
        limits: by their names.
        values: of these, perhaps among others.

    Raises:
        ValueError: with the rule that the first one breaks.
    """
    for name, limit in limits.items():
        if not limit.holds(values[name]):
            raise ValueError(f"{name} {limit.rule}, but got {values[name]!r}")


def check_groups(groups: str | None) -> None:
    """Look at how groups of pictures are found.

    Raises:
        ValueError: neither None, "folder", nor a regular expression with one group.
    """
    if groups is None or groups == "folder":
        return
    try:
        count = re.compile(groups).groups
    except re.error as error:
        raise ValueError(f"groups must be a regular expression, but {groups!r} is none: {error}") from error
    if count != 1:
        raise ValueError(
            f"groups must be 'folder' or a regular expression with one group in brackets, such as '^(p\\d+)_', but "
            f"{groups!r} has {count}"
        )


def _one_of(*choices: str) -> Limit:
    words = " or ".join(map(repr, choices)) if len(choices) == 2 else f"one of {choices}"
    return Limit(f"must be {words}", lambda value: value in choices)


def _or_none(limit: Limit) -> Limit:
    return Limit(f"{limit.rule}, or None", lambda value: value is None or limit.holds(value))


def _finds_groups(value: str) -> bool:
    with suppress(ValueError):
        check_groups(value)
        return True
    return False


def _is_fold(value: Any) -> bool:
    found = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", value) if isinstance(value, str) else None
    return found is not None and 1 <= int(found[1]) <= int(found[2]) and int(found[2]) > 1


def _is_white(value: Any) -> bool:
    whites = value if isinstance(value, Sequence) else [value]
    return bool(whites) and all(isinstance(white, int) and white >= 1 for white in whites)


_AT_LEAST_1 = Limit("must be at least 1", lambda value: value >= 1)
_NOT_NEGATIVE = Limit("must not be negative", lambda value: value >= 0)
_SHARE = Limit("must be a share in [0, 1)", lambda value: 0 <= value < 1)
_PART = Limit("must be between 0 and 1", lambda value: 0 < value < 1)
_FOLDER = Limit(
    "must be a folder that is there, with a folder of pictures for every class, or with train and test, or of pictures "
    "whose labels are in a table (data.labels)",
    os.path.isdir,
)
_GROUPS = Limit(
    "must be folder, or a regular expression with one group in brackets, such as '^(p\\d+)_'", _finds_groups
)
AUGMENTATIONS = ("turns", "stretches", "flips", "crops", "randaugment")
_AUGMENTED = Limit(
    f"must be a list out of {AUGMENTATIONS}",
    lambda value: not isinstance(value, str) and all(name in AUGMENTATIONS for name in value),
)
_RATES = {"lr": _NOT_NEGATIVE, "weight_decay": _NOT_NEGATIVE}

PICTURES = {
    "batch_size": _AT_LEAST_1,
    "eval_batch_size": _or_none(_AT_LEAST_1),
    "seed": _NOT_NEGATIVE,
    "num_workers": _NOT_NEGATIVE,
    "augmentation": _AUGMENTED,
    "train_pictures": _or_none(_AT_LEAST_1),
}
SPLIT = {"split_seed": _NOT_NEGATIVE}
FOLDERS = SPLIT | {
    "size": _AT_LEAST_1,
    "val_share": _PART,
    "test_share": Limit("must be above 0 and at most 1, which tests all", lambda value: 0 < value <= 1),
    "unreadable": _one_of("refuse", "skip"),
    "least_batches": _NOT_NEGATIVE,
    "copies": _one_of("refuse", "keep"),
    "channels": _one_of("colour", "grey", "pages"),
    "framing": _one_of("centre", "whole"),
    "kept_gb": _NOT_NEGATIVE,
    "fold": _or_none(Limit("must be one of at least two, such as 1/5 … 5/5", _is_fold)),
}
DIGITS = SPLIT | {"turned": _one_of("all", "test", "none")}
ROTMNIST = SPLIT | {"source": _one_of("official", "mnist"), "clutter": _NOT_NEGATIVE}
_MORE_OF_FOLDERS = {  # of which the data say more themselves
    "root": _FOLDER,
    "labels": Limit("must be a table that is there", os.path.isfile),
    "groups": _GROUPS,
    "white": Limit("must be at least 1, or a list of such numbers, one for each page", _is_white),
}

LIMITS: Mapping[str, Mapping[str, Limit]] = {
    "gsa.data.CIFAR10DataModule": PICTURES | SPLIT,
    "gsa.data.DigitsDataModule": PICTURES | DIGITS,
    "gsa.data.ImageFolderDataModule": PICTURES | FOLDERS | _MORE_OF_FOLDERS,
    "gsa.data.PCamDataModule": PICTURES | SPLIT,
    "gsa.data.RotMNISTDataModule": PICTURES | ROTMNIST,
    "gsa.training.muon": {**_RATES, "matrix_lr": _NOT_NEGATIVE, "momentum": _SHARE},
    "gsa.training.warmup_cosine": {"warmup": _SHARE},
    "torch.optim.Adam": _RATES,
    "torch.optim.AdamW": _RATES,
    "torch.optim.SGD": {**_RATES, "momentum": _NOT_NEGATIVE},
}
