"""Cross-validation: every picture is in the test of one of several runs."""

import re
from collections.abc import Callable, Sequence

import numpy

__all__ = ["in_fold", "read_fold"]


def read_fold(fold: str | None) -> tuple[int, int] | None:
    """ "2/5" → (2, 5), the second of five folds.

    Raises:
        ValueError: other texts, fewer than two folds, or one that is not among them.
    """
    if fold is None:
        return None
    found = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", fold) if isinstance(fold, str) else None
    if found is None or not 1 <= int(found[1]) <= int(found[2]) or int(found[2]) < 2:
        raise ValueError(f"fold must be one of at least two, such as 1/5 … 5/5, or None, but got {fold!r}")
    return int(found[1]), int(found[2])


def in_fold(
    labels: Sequence[int], groups: Sequence[str], fold: tuple[int, int], seed: int, name: Callable[[int], str]
) -> tuple[list[int], list[int]]:
    """Indices of what is left, and of a fold: scikit-learn's StratifiedGroupKFold.

    Args:
        labels, groups: of all pictures; a group stays together, and classes are shared out as evenly as groups allow.
        fold: number, from 1 on, and count; the folds of one seed are disjoint, and together all pictures.
        seed: of the order in which groups are dealt out.
        name: of a label, for messages.

    Raises:
        ValueError: a class with fewer groups than folds, or of which there is none in the fold, or in the rest.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    number, count = fold
    known = numpy.asarray(labels)
    for label in sorted(set(labels)):
        if (found := len({group for group, own in zip(groups, labels, strict=True) if own == label})) < count:
            raise ValueError(
                f"every class must have different pictures or groups in each of {count} folds, but {name(label)} has "
                f"{found}: take fewer folds"
            )
    folds = StratifiedGroupKFold(count, shuffle=True, random_state=seed % 2**32).split(known, known, groups)
    rest, test = list(folds)[number - 1]
    if missing := [label for label in sorted(set(labels)) if not {label} <= set(known[rest]) & set(known[test])]:
        raise ValueError(
            f"every class must have pictures in the fold {number}/{count} and in the others, but {name(missing[0])} is "
            "missing in one where groups stay together: take fewer folds, or another split_seed"
        )
    return rest.tolist(), test.tolist()
