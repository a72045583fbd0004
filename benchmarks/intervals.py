"""How often the 95 % intervals of reports hold the true share, for pictures in groups of different sizes.

    python benchmarks/intervals.py

Answers are drawn: each group has a share of right ones of its own, from a Beta distribution with the mean `share`, and
answers within a group are correlated by `alike`. Beside them, the interval of as many independent pictures; and that of
the difference of two networks on the same pictures, of which the second is 5 points behind.
"""

import argparse

import numpy
from _machine import add_record, save
from numpy.typing import NDArray

from gsa.report import difference_interval, share_interval

PICTURES = 12  # of a group in the mean
BEHIND = 0.05
HEADER = """| groups | share | alike | holds it, % | as if independent, % | width | holds the difference, % |
|---|---|---|---|---|---|---|"""


def answers(random: numpy.random.Generator, place: NDArray, groups: int, share: float, alike: float) -> NDArray:
    """Whether each picture is answered rightly."""
    both = (1 - alike) / alike
    return random.random(len(place)) < random.beta(share * both, (1 - share) * both, groups)[place]


def row(groups: int, share: float, alike: float, times: int) -> str:
    """A line of the table."""
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
    shares = [100 * count / times for count in (held, alone, difference)]
    return (
        f"| {groups} | {share} | {alike} | {shares[0]:.1f} | {shares[1]:.1f} | {width / times:.3f} | {shares[2]:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--times", type=int, default=2000, help="that a test is drawn for a line")
    times = parser.parse_args().times
    rows = [
        row(groups, share, alike, times)
        for groups in (5, 10, 20, 50)
        for share in (0.6, 0.9, 0.98)
        for alike in (0.01, 0.1, 0.3, 0.6)
    ]
    text = "\n".join([f"{times} draws a line, {PICTURES} pictures a group in the mean.", "", HEADER, *rows])
    print(text)
    save("intervals", f"python benchmarks/intervals.py --times {times} --record", text)


if __name__ == "__main__":
    main()
