"""Cross-validation: every picture is in the test of one of several runs."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy

from gsa.data._division import dealt_out_by_groups

__all__ = ["in_fold", "read_fold"]


def read_fold(fold: str | None) -> tuple[int, int] | None:
    """Number and count of a fold: (2, 5) for "2/5", the second of five; None for None."""
    if fold is None:
        return None
    number, count = fold.split("/")
    return int(number), int(count)


def in_fold(
    labels: Sequence[int],
    contents: Sequence[str],
    groups: Sequence[str] | None,
    fold: tuple[int, int],
    seed: int,
    name: Callable[[int], str],
) -> tuple[list[int], list[int]]:
    """Indices of what is left, and of a fold; where one is refused, so are all.

    Pictures with the same content stay together, and the folds have of every class as many different ones, but for one.
    With groups, these stay together, and classes are shared out as evenly as that allows (`dealt_out_by_groups`).

    Args:
        labels, contents: of all pictures.
        groups: of all pictures; None where there are none.
        fold: number, from 1 on, and count; the folds of one seed are disjoint, and together all pictures.
        seed: of the order in which pictures or groups are dealt out.
        name: of a label, for messages.

    Raises:
        ValueError: a class with fewer different pictures, or groups, than folds, or of which a fold would get none.
    """
    number, count = fold
    known, kind = numpy.asarray(labels), "different pictures" if groups is None else "groups"
    units = set(zip(labels, contents if groups is None else groups, strict=True))
    for label, found in sorted(Counter(label for label, _ in units).items()):
        if found < count:
            raise ValueError(
                f"every class must have {kind} in each of {count} folds, but {name(label)} has {found}: take fewer"
            )
    if groups is None:
        place = _round_the_folds(labels, contents, count, seed)
    else:
        place, _ = dealt_out_by_groups(labels, groups, lambda held: numpy.tile(held.sum(0) / count, (count, 1)), seed)
    for label in sorted(set(labels)):
        if len(set(place[known == label].tolist())) < count:
            raise ValueError(
                f"every class must have pictures in each of {count} folds, but {name(label)} is missing in one where "
                f"{kind} stay together: take fewer folds, or another split_seed"
            )
    return numpy.flatnonzero(place != number - 1).tolist(), numpy.flatnonzero(place == number - 1).tolist()


def _round_the_folds(labels: Sequence[int], contents: Sequence[str], count: int, seed: int) -> numpy.ndarray:
    """The fold of every picture: class by class, the different ones go to one fold after the other, and so on."""
    random, known = numpy.random.default_rng(seed), numpy.asarray(labels)
    first: dict[str, int] = {}
    originals = [first.setdefault(content, row) for row, content in enumerate(contents)]
    different = numpy.array([*first.values()])
    dealt = [random.permutation(different[known[different] == label]) for label in sorted(set(labels))]
    place = numpy.zeros(len(labels), dtype=int)
    place[numpy.concatenate(dealt)] = numpy.arange(len(different)) % count
    return place[originals]
