"""Pictures drawn into parts, by fair shares of every class."""

from collections.abc import Callable, Mapping, Sequence

import numpy

__all__ = ["by_groups", "divided", "stratified"]


def divided(
    labels: Sequence[int],
    contents: Sequence[str],
    shares: Mapping[str, float],
    seed: int,
    name: Callable[[int], str],
) -> list[list[int]]:
    """`stratified`, where pictures with the same content come into one part; shares are of different ones.

    Args:
        labels, contents: of all pictures.
        shares, seed, name: as of `stratified`.

    Raises:
        ValueError: as `stratified`.
    """
    rows: dict[str, int] = {}
    originals = [rows.setdefault(content, row) for row, content in enumerate(contents)]
    different = list(rows.values())
    parts = stratified([labels[row] for row in different], shares, seed, name)
    place = {different[index]: number for number, part in enumerate(parts) for index in part}
    return [
        [row for row, original in enumerate(originals) if place[original] == number] for number in range(len(parts))
    ]


def stratified(
    labels: Sequence[int], shares: Mapping[str, float], seed: int, name: Callable[[int], str]
) -> list[list[int]]:
    """Indices in parts, every label in each part by its share and at least once; what remains is the last part.

    Args:
        labels: of all pictures.
        shares: of all parts but the last, by their names for messages.
        seed: of the order in which they are dealt out.
        name: of a label, for messages.

    Raises:
        ValueError: a label that has too few pictures to be in every part, or shares that leave none.
    """
    random = numpy.random.default_rng(seed)
    parts: list[list[int]] = [[] for _ in range(len(shares) + 1)]
    for label in sorted(set(labels)):
        order = random.permutation([index for index, found in enumerate(labels) if found == label]).tolist()
        counts = [max(round(share * len(order)), 1) for share in shares.values()]
        if sum(counts) >= len(order):
            raise ValueError(
                f"every class must have pictures in each of {len(parts)} parts, but {name(label)} has {len(order)}, "
                f"of which {_named(shares, counts)}"
            )
        for part, count in zip(parts, [*counts, len(order)], strict=True):
            part += order[:count]
            order = order[count:]
    return [sorted(part) for part in parts]


def by_groups(
    labels: Sequence[int], groups: Sequence[str], shares: Mapping[str, float], seed: int, name: Callable[[int], str]
) -> list[list[int]]:
    """`stratified`, where a group comes into one part: the one that lacks most of its share of the group's classes.

    The largest groups are placed first, which brings the sum of squares of what parts lack down at each step.

    Args:
        labels, groups: of all pictures.
        shares, seed, name: as of `stratified`; shares of a class are rounded to groups.

    Raises:
        ValueError: a class that has too few groups to be in every part, or of which a part would get none.
    """
    names, rows = numpy.unique(groups, return_inverse=True)
    held = numpy.zeros((len(names), max(labels) + 1))
    numpy.add.at(held, (rows, numpy.array(labels)), 1)
    total, wanted = held.sum(0), _wanted(held, shares, name)
    order = numpy.random.default_rng(seed).permutation(len(names))
    order = order[numpy.argsort(-(held / total).sum(1)[order], kind="stable")]
    given, place = numpy.zeros_like(wanted), numpy.zeros(len(names), dtype=int)
    for group in order:
        place[group] = ((wanted - given) / total**2 @ held[group]).argmax()
        given[place[group]] += held[group]
    if not given.all():
        label = int((given == 0).any(0).nonzero()[0][0])
        found = " / ".join(f"{count:.0f}" for count in given[:, label])
        raise ValueError(
            f"every class must have pictures in each of {len(given)} parts, but of {name(label)} they have {found} "
            f"({', '.join(shares)}, the rest) where groups stay together: make folders train, val and test"
        )
    return [numpy.flatnonzero(place[rows] == part).tolist() for part in range(len(given))]


def _wanted(held: numpy.ndarray, shares: Mapping[str, float], name: Callable[[int], str]) -> numpy.ndarray:
    """Pictures that each part should have of each class, in the size of so many of its groups, one at least."""
    counts = (held > 0).sum(0)
    taken = numpy.array([numpy.maximum((share * counts).round(), 1) for share in shares.values()])
    if (few := taken.sum(0) >= counts).any():
        label = int(few.nonzero()[0][0])
        raise ValueError(
            f"every class must have groups in each of {len(shares) + 1} parts, but {name(label)} has {counts[label]}, "
            f"of which {_named(shares, taken[:, label].tolist())}"
        )
    taken = numpy.vstack([taken, counts - taken.sum(0)])
    return taken / counts * held.sum(0)


def _named(shares: Mapping[str, float], counts: Sequence[float]) -> str:
    return ", ".join(f"{share} takes {count:.0f}" for share, count in zip(shares, counts, strict=True))
