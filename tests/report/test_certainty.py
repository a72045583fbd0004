"""How far shares and areas may be off by chance: coverage over drawn pictures, in groups and not."""

import numpy
import pytest

from gsa.report import area_interval, difference_interval, share_interval

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


def test_of_equal_classes_it_is_that_of_all_pictures_where_they_do_as_well():
    right, classes = [1, 1, 1, 0] * 20, ["a", "b"] * 40
    right[1::2] = right[::2]
    assert share_interval(right, range(80), classes) == pytest.approx(share_interval(right, range(80)))


@pytest.mark.parametrize("rare, frequent", [(0.7, 0.95), (0.95, 0.7)])
@pytest.mark.parametrize("alike", [None, 0.3])
def test_of_classes_that_count_alike_it_holds_their_mean(rare, frequent, alike):
    """Planted: as if the pictures of both counted alike, it does not."""
    random, held, held_alone = numpy.random.default_rng(0), 0, 0
    classes = ["rare"] * 40 + ["frequent"] * 400
    groups = [row // 4 for row in range(440)] if alike else range(440)
    for _ in range(TIMES):
        shares = numpy.repeat([rare, frequent], [40, 400])
        if alike:
            both = (1 - alike) / alike
            shares = numpy.repeat(random.beta(shares[::4] * both, (1 - shares[::4]) * both), 4)
        right = random.random(440) < shares
        low, high = share_interval(right, groups, classes)
        held += low <= (rare + frequent) / 2 <= high
        low, high = share_interval(right, groups)
        held_alone += low <= (rare + frequent) / 2 <= high
    assert held / TIMES > 0.9 and held_alone / TIMES < 0.2


def test_differences_of_classes_that_count_alike_are_about_their_mean():
    """The second is wrong in half of the rare class: a quarter of the mean, a fortieth of all."""
    classes, second = ["rare"] * 40 + ["frequent"] * 760, [1, 0] * 20 + [1] * 760
    low, high = difference_interval([1] * 800, second, range(800), classes)
    assert 0.1 < low < 0.25 < high < 0.4
    assert difference_interval([1] * 800, second, range(800))[1] < 0.05


def test_a_class_of_one_group_is_as_good_as_not_seen():
    """Of how alike its pictures are, the groups of the other class say nothing."""
    classes, groups = ["a"] * 50 + ["b"] * 50, ["p"] * 50 + list(range(50))
    right = [1, 0] * 50
    low, high = share_interval(right, groups, classes)
    assert low < 0.1 and high > 0.9
    low, high = area_interval(numpy.linspace(0, 1, 100), [True, False] * 50, ["p", *range(99)])
    assert high - low < 0.3
    low, high = area_interval(right, [True] * 50 + [False] * 50, groups)
    assert low < 0.1 and high > 0.9


@pytest.mark.parametrize("area", [0.6, 0.9, 0.99])
@pytest.mark.parametrize("alike", [0, 0.6])
def test_an_interval_holds_the_area(area, alike):
    """Of normal scores, with both classes in every group, or neither. Planted: groups taken for pictures."""
    stats = pytest.importorskip("scipy.stats")
    random, held, held_alone = numpy.random.default_rng(0), 0, 0
    positive = numpy.arange(160) < 40
    groups = numpy.arange(160) // 8 if alike else numpy.arange(160)
    for _ in range(TIMES):
        of_group = random.standard_normal(160)[groups] * alike**0.5
        scores = of_group + random.standard_normal(160) * (1 - alike) ** 0.5
        scores += positive * 2**0.5 * stats.norm.ppf(area)
        low, high = area_interval(scores, positive, groups.tolist())
        held += low <= area <= high
        low, high = area_interval(scores, positive, range(160))
        held_alone += low <= area <= high
    assert held / TIMES > 0.92 and (not alike or area > 0.9 or held_alone / TIMES < 0.8)


def test_the_interval_of_an_area_is_newcombes():
    """Solved by hand: of five pictures and five, all in order; and of scores that are all the same."""
    low, high = area_interval([3, 3, 3, 4, 4, 1, 1, 2, 2, 2], [1] * 5 + [0] * 5, range(10))
    spread = low * (1 - low) * (1 + 4 * (1 - low) / (2 - low) + 4 * low / (1 + low)) / 25
    assert high == 1 and 1 - low == pytest.approx(1.96 * spread**0.5) and 0.5 < low < 0.8
    low, high = area_interval([1] * 10, [1] * 5 + [0] * 5, range(10))
    assert low < 0.5 < high and low == pytest.approx(1 - high)
    assert area_interval([0, 1], [1, 0], range(2))[0] == 0
    assert area_interval([0, 1, 2], [1, 0, 0], "aaa") == (0, 1)


def test_shares_that_are_equal_but_for_rounding_are_equal():
    """Nine times in ten, which no binary number is."""
    classes = [0, 1, 0, 1, 0, 1, 0]
    low, high = difference_interval([0.7] * 7, [0] * 7, range(7), classes)
    assert 0 < low < 0.7 < high
    found, near = (share_interval([*[0.9] * 99, last], [row // 2 for row in range(100)]) for last in (0.9, 0.9000001))
    assert found[0] == pytest.approx(near[0], abs=0.01)
