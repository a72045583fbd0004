"""How often the 95 % intervals of reports hold what they are of, for pictures in groups of different sizes.

    python benchmarks/intervals.py

First, of accuracy: each group has a share of right answers of its own, from a Beta distribution with the mean `share`,
and answers within a group are correlated by `alike`. Beside it, the interval of as many independent pictures; and that
of the difference of two networks on the same pictures, of which the second is 5 points behind.

Second, of balanced accuracy: the same of two classes, `rare` and `other`, with groups of `size` pictures, in which
answers are correlated by 0.3. Beside it, the interval of accuracy, in which all pictures count alike.

Third, of the area under the ROC curve: scores are normal, and correlated by `alike` in groups of `size` pictures, which
are of one class (`mixed` no) or of both. Beside it, the interval of as many independent pictures.
"""

import argparse
import math
from collections.abc import Iterable, Sequence
from itertools import product
from statistics import NormalDist

import numpy
from _machine import add_record, save
from numpy.typing import NDArray

from gsa.report import area_interval, difference_interval, share_interval

PICTURES = 12  # of a group in the mean
BEHIND = 0.05
ALIKE = 0.3


def answers(random: numpy.random.Generator, place: NDArray, groups: int, share: float, alike: float) -> NDArray:
    """Whether each picture is answered rightly."""
    both = (1 - alike) / alike
    return random.random(len(place)) < random.beta(share * both, (1 - share) * both, groups)[place]


def of_shares(groups: int, share: float, alike: float, times: int) -> list[object]:
    """A line of the first table."""
    random = numpy.random.default_rng(0)
    held, alone, difference, width = 0, 0, 0, 0.0
    for _ in range(times):
        place = numpy.repeat(numpy.arange(groups), random.geometric(1 / PICTURES, groups))
        first, second = (answers(random, place, groups, each, alike) for each in (share, share - BEHIND))
        low, high = share_interval(first, place.tolist())
        held, width = held + (low <= share <= high), width + high - low
        low, high = share_interval(first, range(len(place)))
        alone += low <= share <= high
        low, high = difference_interval(first, second, place.tolist())
        difference += low <= BEHIND <= high
    percent = [f"{100 * count / times:.1f}" for count in (held, alone, difference)]
    return [groups, share, alike, *percent[:2], f"{width / times:.3f}", percent[2]]


def of_classes(rare: int, other: int, shares: tuple[float, float], size: int, times: int) -> list[object]:
    """A line of the second table."""
    random, mean = numpy.random.default_rng(0), sum(shares) / 2
    of_each = [numpy.arange(count) // size for count in (rare, other)]
    groups = [*of_each[0].tolist(), *(of_each[1] + rare).tolist()]
    classes = [0] * rare + [1] * other
    held, alone, difference, width = 0, 0, 0, 0.0
    for _ in range(times):
        first, second = (
            numpy.concatenate(
                [
                    answers(random, place, place[-1] + 1, share - behind, ALIKE)
                    for place, share in zip(of_each, shares, strict=True)
                ]
            )
            for behind in (0, BEHIND)
        )
        low, high = share_interval(first, groups, classes)
        held, width = held + (low <= mean <= high), width + high - low
        low, high = share_interval(first, groups)
        alone += low <= mean <= high
        low, high = difference_interval(first, second, groups, classes)
        difference += low <= BEHIND <= high
    percent = [f"{100 * count / times:.1f}" for count in (held, alone, difference)]
    return [rare, other, *shares, size, *percent[:2], f"{width / times:.3f}", percent[2]]


def of_areas(sought: int, other: int, area: float, size: int, mixed: bool, alike: float, times: int) -> list[object]:
    """A line of the third table."""
    random, pictures = numpy.random.default_rng(0), sought + other
    positive = numpy.arange(pictures) < sought
    apart = math.sqrt(2) * NormalDist().inv_cdf(area)
    held, alone, width = 0, 0, 0.0
    for _ in range(times):
        place = numpy.arange(pictures) // size
        if mixed:
            place = random.permutation(place)
        of_group = random.standard_normal(place.max() + 1)[place]
        scores = math.sqrt(alike) * of_group + math.sqrt(1 - alike) * random.standard_normal(pictures)
        low, high = area_interval(scores + apart * positive, positive, place.tolist())
        held, width = held + (low <= area <= high), width + high - low
        low, high = area_interval(scores + apart * positive, positive, range(pictures))
        alone += low <= area <= high
    percent = [f"{100 * count / times:.1f}" for count in (held, alone)]
    return [sought, other, area, size, "yes" if mixed else "no", alike, *percent, f"{width / times:.3f}"]


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join([title, "", *(f"| {' | '.join(map(str, line))} |" for line in lines)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--times", type=int, default=2000, help="that a test is drawn for a line")
    times = parser.parse_args().times
    held = ["holds it, %", "as if independent, %", "width"]
    shares = [
        of_shares(groups, share, alike, times)
        for groups, share, alike in product((5, 10, 20, 50), (0.6, 0.9, 0.98), (0.01, 0.1, 0.3, 0.6))
    ]
    classes = [
        of_classes(*counts, each, size, times)
        for counts, each, size in product(
            ((5, 100), (20, 20), (20, 200), (100, 400)), ((0.6, 0.98), (0.98, 0.6), (0.9, 0.9), (0.98, 0.98)), (1, 4)
        )
    ]
    areas = [
        of_areas(*counts, area, *groups, times)
        for counts, area, groups in product(
            ((5, 5), (20, 20), (20, 200), (100, 400)),
            (0.6, 0.9, 0.99),
            ((1, False, 0.0), (4, False, 0.1), (4, False, 0.5), (4, True, 0.5)),
        )
    ]
    text = "\n\n".join(
        [
            f"{times} draws a line.",
            table(
                f"Accuracy, {PICTURES} pictures a group in the mean:",
                ["groups", "share", "alike", *held, "holds the difference, %"],
                shares,
            ),
            table(
                "Balanced accuracy:",
                [
                    "rare",
                    "other",
                    "share",
                    "of others",
                    "size",
                    held[0],
                    "accuracy's, %",
                    held[2],
                    "holds the difference, %",
                ],
                classes,
            ),
            table("Area under the ROC curve:", ["sought", "other", "area", "size", "mixed", "alike", *held], areas),
        ]
    )
    print(text)
    save("intervals", f"python benchmarks/intervals.py --times {times} --record", text)


if __name__ == "__main__":
    main()
