"""Pictures drawn into parts, by fair shares of every class."""

from collections.abc import Callable, Mapping, Sequence

import numpy

__all__ = ["divided", "stratified"]


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
            taken = ", ".join(f"{share} takes {count}" for share, count in zip(shares, counts, strict=True))
            raise ValueError(
                f"every class must have pictures in each of {len(parts)} parts, but {name(label)} has {len(order)}, "
                f"of which {taken}"
            )
        for part, count in zip(parts, [*counts, len(order)], strict=True):
            part += order[:count]
            order = order[count:]
    return [sorted(part) for part in parts]
