"""How far shares may be off by chance: coverage over drawn pictures, in groups and not."""

import numpy
import pytest

from gsa.report import difference_interval, share_interval

GROUPS, TIMES = 20, 400


def shares_of(random, share, alike):
    """How often pictures of each group are answered rightly: correlated within it by `alike`."""
    return random.beta(share * (1 - alike) / alike, (1 - share) * (1 - alike) / alike, GROUPS)


def groups_of(random):
    """The group of every picture, of different sizes."""
    return numpy.repeat(numpy.arange(GROUPS), random.geometric(0.1, GROUPS))


@pytest.mark.parametrize("right, count", [(8, 10), (10, 10), (0, 7), (390, 397)])
def test_of_independent_pictures_it_is_wilsons(right, count):
    """Against SciPy; each alone, or all in groups of one."""
    expected = pytest.importorskip("scipy.stats").binomtest(right, count).proportion_ci(method="wilson")
    found = share_interval([True] * right + [False] * (count - right), [f"p{row}" for row in range(count)])
    assert found == pytest.approx((expected.low, expected.high), abs=1e-4)


@pytest.mark.parametrize("share", [0.6, 0.9])
@pytest.mark.parametrize("alike", [0.1, 0.4])
def test_of_groups_it_holds_the_share_as_often_as_it_says(share, alike):
    """Planted: as if pictures were independent, it does not."""
    random, held, held_alone = numpy.random.default_rng(0), 0, 0
    for _ in range(TIMES):
        place = groups_of(random)
        right = random.random(len(place)) < shares_of(random, share, alike)[place]
        low, high = share_interval(right, place.tolist())
        held += low <= share <= high
        low, high = share_interval(right, range(len(right)))
        held_alone += low <= share <= high
    assert held / TIMES > 0.88 and held_alone / TIMES < 0.8


@pytest.mark.parametrize("alike", [None, 0.3])
def test_of_differences_too(alike):
    """Two networks of 85 and 80 %, of which one is right on other groups than the other."""
    random, held, held_alone = numpy.random.default_rng(0), 0, 0
    for _ in range(TIMES):
        place = groups_of(random)
        groups = place.tolist() if alike else range(len(place))
        answers = [random.random(len(place)) < shares_of(random, share, alike or 1e-6)[place] for share in (0.85, 0.8)]
        low, high = difference_interval(*answers, groups)
        held += low <= 0.05 <= high
        low, high = difference_interval(*answers, range(len(place)))
        held_alone += low <= 0.05 <= high
    assert held / TIMES > 0.92 and (alike is None or held_alone / TIMES < 0.85)


def test_of_independent_differences_it_is_agrestis_and_mins():
    """(c − b ± 1.96 √(b + c + 1 − (c − b)²/(n + 2))) / (n + 2), of n = 20, with c = 5 and b = 2."""
    first, second = [1] * 5 + [0] * 2 + [1] * 13, [0] * 5 + [1] * 2 + [1] * 13
    half = 1.96 * (8 - 9 / 22) ** 0.5
    assert difference_interval(first, second, range(20)) == pytest.approx(((3 - half) / 22, (3 + half) / 22))
    low, high = difference_interval(first, first, range(20))
    assert low == -high < 0


def test_one_group_says_nothing():
    assert share_interval([1, 0, 1], "aaa") == (0, 1) and difference_interval([1, 0], [1, 1], "aa") == (-1, 1)


def test_groups_all_right_are_as_few_pictures():
    """Nothing shows how alike those of a group are: five groups are taken as five pictures, or fewer."""
    alone = share_interval([1] * 5, range(5))
    of_groups = share_interval([1] * 50, [row // 10 for row in range(50)])
    assert of_groups[0] < alone[0] and of_groups[1] == alone[1] == 1


def test_groups_that_say_as_much_as_pictures_are_never_taken_for_more():
    """Each half right: less spread between groups than independent pictures would have."""
    right, groups = [0, 1] * 40, [row // 2 for row in range(80)]
    low, high = share_interval(right, groups)
    alone = share_interval(right, range(80))
    assert low < alone[0] and high > alone[1]
