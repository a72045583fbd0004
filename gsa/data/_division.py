"""Pictures drawn into parts, by fair shares of every class."""

from collections.abc import Callable, Mapping, Sequence

import numpy

__all__ = ["by_groups", "dealt_out_by_groups", "divided", "few_of_all", "few_of_groups", "stratified"]

_DECIMALS = 12  # of shares that are compared: what is equal is equal on every processor


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
        ValueError: as `stratified`; a class of copies of others' pictures that is missing in a part.
    """
    rows: dict[str, int] = {}
    originals = [rows.setdefault(content, row) for row, content in enumerate(contents)]
    different = list(rows.values())
    parts = stratified([labels[row] for row in different], shares, seed, name)
    place = {different[index]: number for number, part in enumerate(parts) for index in part}
    found = [
        [row for row, original in enumerate(originals) if place[original] == number] for number in range(len(parts))
    ]
    known = set(labels)
    if lacking := known - known.intersection(*({labels[row] for row in part} for part in found)):
        raise ValueError(
            f"every class must have pictures in each of {len(parts)} parts, but those of {name(min(lacking))} are "
            "copies of other classes' and come with them: take them away"
        )
    return found


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
    random, known = numpy.random.default_rng(seed), numpy.asarray(labels)
    parts: list[list[int]] = [[] for _ in range(len(shares) + 1)]
    for label in sorted(set(labels)):
        order = random.permutation(numpy.flatnonzero(known == label)).tolist()
        counts = _counts(len(order), shares)
        if sum(counts) >= len(order):
            raise ValueError(
                f"every class must have pictures in each of {len(parts)} parts, but {name(label)} has {len(order)}, "
                f"of which {_named(shares, counts)}: it takes at least {_fewest(len(order), shares)} different ones"
            )
        for part, count in zip(parts, [*counts, len(order)], strict=True):
            part += order[:count]
            order = order[count:]
    return [sorted(part) for part in parts]


def by_groups(
    labels: Sequence[int], groups: Sequence[str], shares: Mapping[str, float], seed: int, name: Callable[[int], str]
) -> list[list[int]]:
    """`stratified`, where a group comes into one part: the one that lacks most of its share of the group's classes.

    Of all parts it is the one that brings the sum of the squares of what they lack down most. Groups are dealt out in a
    drawn order, so that large ones come into every part as often as small ones; but for those that are larger than some
    part is to be, which come first. Of folds, which are all alike, the largest do. Where a part has got none of a
    class, groups are moved.

    Args:
        labels, groups: of all pictures.
        shares, seed, name: as of `stratified`; shares of a class are rounded to groups.

    Raises:
        ValueError: a class that has too few groups to be in every part, or of which a part would get none.
    """
    place, given = dealt_out_by_groups(labels, groups, lambda held: _wanted(held, shares, name), seed)
    if not given.all():
        label = int((given == 0).any(0).nonzero()[0][0])
        found = " / ".join(f"{count:.0f}" for count in given[:, label])
        raise ValueError(
            f"every class must have pictures in each of {len(given)} parts, but of {name(label)} they have {found} "
            f"({', '.join(shares)}, the rest) where groups stay together: make folders train, val and test"
        )
    return [numpy.flatnonzero(place == part).tolist() for part in range(len(given))]


def dealt_out_by_groups(
    labels: Sequence[int], groups: Sequence[str], wanted_of: Callable[[numpy.ndarray], numpy.ndarray], seed: int
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The part of every picture, and how many of each class every part has got: `by_groups`.

    Args:
        labels, groups, seed: as of `by_groups`.
        wanted_of: pictures [groups, classes] → what each part should have, [parts, classes].
    """
    names, rows = numpy.unique(groups, return_inverse=True)
    held = numpy.zeros((len(names), max(labels) + 1))
    numpy.add.at(held, (rows, numpy.array(labels)), 1)
    total, wanted = held.sum(0), wanted_of(held)
    sizes, shares = held.sum(1), wanted.sum(1)
    comes_first = sizes > (shares.min() if shares.max() > shares.min() else 0)
    order = numpy.random.default_rng(seed).permutation(len(names))
    order = order[numpy.argsort((-sizes * comes_first)[order], kind="stable")]
    given, place = numpy.zeros_like(wanted), numpy.zeros(len(names), dtype=int)
    for group in order:
        lack = (wanted - given) / total**2 @ held[group]
        place[group] = lack.round(_DECIMALS).argmax()
        given[place[group]] += held[group]
    if not given.all():
        place = _moved(place, held, wanted)
        given = numpy.stack([held[place == part].sum(0) for part in range(len(wanted))])
    return place[rows], given


def few_of_all(labels: Sequence[int], count: int, seed: int) -> list[int]:
    """Indices of so many pictures, of every class its share and at least one; fewer are among more of the same seed.

    Args:
        labels: of all pictures.
        count: at least that of the classes.
        seed: of the order in which they are taken.
    """
    order = numpy.random.default_rng(seed).permutation(len(labels))
    found = numpy.asarray(labels)[order]
    place = numpy.empty(len(order))  # in its class, from 0 to 1
    for label in set(labels):
        rows = numpy.flatnonzero(found == label)
        place[rows] = numpy.arange(len(rows)) / len(rows)
    return sorted(order[numpy.argsort(place, kind="stable")[:count]].tolist())


def few_of_groups(labels: Sequence[int], groups: Sequence[str], count: int, seed: int) -> list[int]:
    """`few_of_all` of few groups: one after the other, of which the last may come in part.

    The next is always one that has pictures of the class of which the smallest share has been taken.

    Args:
        labels, groups: of all pictures.
        count, seed: as of `few_of_all`.

    Raises:
        ValueError: so few that a class is missing.
    """
    random = numpy.random.default_rng(seed)
    names, rows = numpy.unique(groups, return_inverse=True)
    held = numpy.zeros((len(names), max(labels) + 1))
    numpy.add.at(held, (rows, numpy.array(labels)), 1)
    total, given = numpy.maximum(held.sum(0), 1), numpy.zeros(held.shape[1])
    order = random.permutation(len(names))
    left = [[group for group in order[::-1].tolist() if held[group, label]] for label in range(held.shape[1])]
    turn: dict[int, int] = {}
    while len(turn) < len(names):
        shares = [given[label] / total[label] if left[label] else numpy.inf for label in range(len(left))]
        group = left[int(numpy.argmin(shares))].pop()
        if group not in turn:
            turn[group] = len(turn)
            given += held[group]
    pictures = random.permutation(len(labels))
    ordered = pictures[numpy.argsort([turn[row] for row in rows[pictures]], kind="stable")].tolist()
    place = {label: row for row, label in reversed([*enumerate((labels[row] for row in ordered), 1)])}
    if count < (fewest := max(place.values())):
        raise ValueError(
            f"train_pictures must be at least {fewest}, for groups of every class to be among them, but got {count}"
        )
    return sorted(ordered[:count])


def _moved(place: numpy.ndarray, held: numpy.ndarray, wanted: numpy.ndarray) -> numpy.ndarray:
    """The parts of groups after moves, one at a time, each the best of all groups with a class that a part is without.

    A move is made if it leaves fewer parts without a class, or as many that lack less of their shares.
    """
    place, parts = place.copy(), numpy.eye(len(wanted))
    fewest: tuple[float, float] | None = None
    while True:
        given = parts[place].T @ held
        concerned = numpy.flatnonzero(held[:, (given == 0).any(0)].any(1))
        if not len(concerned):
            return place
        moves = parts[None, :, :, None] - parts[place[concerned], None, :, None]  # [group, to a part, part, class]
        given = given + moves * held[concerned, None, None, :]
        empty = (given == 0).sum((2, 3)).ravel()
        lack = (((wanted - given) / held.sum(0)) ** 2).sum((2, 3)).ravel().round(_DECIMALS)
        best = int(numpy.lexsort((lack, empty))[0])
        outcome = empty[best], lack[best]
        if fewest is not None and outcome >= fewest:
            return place
        fewest = outcome
        place[concerned[best // len(parts)]] = best % len(parts)


def _wanted(held: numpy.ndarray, shares: Mapping[str, float], name: Callable[[int], str]) -> numpy.ndarray:
    """Pictures that each part should have of each class, in the size of so many of its groups, one at least."""
    groups: list[int] = (held > 0).sum(0).tolist()
    taken = [_counts(count, shares) for count in groups]
    for label, (count, counts) in enumerate(zip(groups, taken, strict=True)):
        if sum(counts) >= count:
            raise ValueError(
                f"every class must have groups in each of {len(shares) + 1} parts, but {name(label)} has {count}, of "
                f"which {_named(shares, counts)}: it takes at least {_fewest(count, shares)}"
            )
    parts = numpy.array([[*counts, count - sum(counts)] for count, counts in zip(groups, taken, strict=True)])
    return parts.T / groups * held.sum(0)


def _counts(count: int, shares: Mapping[str, float]) -> list[int]:
    """How many of so many each part takes, but for the last."""
    return [max(round(share * count), 1) for share in shares.values()]


def _fewest(count: int, shares: Mapping[str, float]) -> int:
    """From how many on the last part gets one, too."""
    while sum(_counts(count, shares)) >= count:
        count += 1
    return count


def _named(shares: Mapping[str, float], counts: Sequence[int]) -> str:
    return ", ".join(f"{share} takes {count}" for share, count in zip(shares, counts, strict=True))
