"""Values that targets refuse, known before these are imported; the targets' own checks agree."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["LIMITS", "Limit"]


@dataclass(frozen=True)
class Limit:
    """What a value of the right type has to be.

    Args:
        rule: in words, as "must be at least 1".
        holds: whether a plain value is within it.
    """

    rule: str
    holds: Callable[[Any], bool]


def _one_of(*choices: str) -> Limit:
    return Limit(f"must be one of {choices}", lambda value: value in choices)


def _has_one_group(value: str) -> bool:
    try:
        return re.compile(value).groups == 1
    except re.error:
        return False


def _is_fold(value: str) -> bool:
    found = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", value)
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
    "must be folder, or a regular expression with one group in brackets, such as '^(p\\d+)_'",
    lambda value: value == "folder" or _has_one_group(value),
)
_AUGMENTATIONS = ("turns", "stretches", "flips", "crops", "randaugment")
_AUGMENTED = Limit(
    f"must be a list out of {_AUGMENTATIONS}", lambda value: all(name in _AUGMENTATIONS for name in value)
)

_PICTURES = {
    "batch_size": _AT_LEAST_1,
    "eval_batch_size": _AT_LEAST_1,
    "seed": _NOT_NEGATIVE,
    "num_workers": _NOT_NEGATIVE,
    "augmentation": _AUGMENTED,
    "train_pictures": _AT_LEAST_1,
}
_FOLDERS = {
    "root": _FOLDER,
    "size": _AT_LEAST_1,
    "val_share": _PART,
    "test_share": Limit("must be above 0 and at most 1, which tests all", lambda value: 0 < value <= 1),
    "unreadable": _one_of("refuse", "skip"),
    "least_batches": _NOT_NEGATIVE,
    "groups": _GROUPS,
    "white": Limit("must be at least 1, or a list of such numbers, one for each page", _is_white),
    "copies": _one_of("refuse", "keep"),
    "channels": _one_of("colour", "grey", "pages"),
    "kept_gb": _NOT_NEGATIVE,
    "labels": Limit("must be a table that is there", os.path.isfile),
    "fold": Limit("must be one of at least two, such as 1/5 … 5/5", _is_fold),
}
_RATES = {"lr": _NOT_NEGATIVE, "weight_decay": _NOT_NEGATIVE}

LIMITS: Mapping[str, Mapping[str, Limit]] = {
    "gsa.data.CIFAR10DataModule": _PICTURES,
    "gsa.data.DigitsDataModule": _PICTURES,
    "gsa.data.ImageFolderDataModule": _PICTURES | _FOLDERS,
    "gsa.data.PCamDataModule": _PICTURES,
    "gsa.data.RotMNISTDataModule": _PICTURES | {"source": _one_of("official", "mnist")},
    "gsa.training.muon": {**_RATES, "matrix_lr": _NOT_NEGATIVE, "momentum": _SHARE},
    "gsa.training.warmup_cosine": {"warmup": _SHARE},
    "torch.optim.Adam": _RATES,
    "torch.optim.AdamW": _RATES,
    "torch.optim.SGD": {**_RATES, "momentum": _NOT_NEGATIVE},
}
