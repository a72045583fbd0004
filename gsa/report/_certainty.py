"""How far a share of pictures may be off by chance, where pictures of one group, such as a patient's, are alike."""

import math
from collections.abc import Hashable, Sequence

import numpy
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

__all__ = ["difference_interval", "share_interval"]

_Z = 1.96  # of 95 %


def share_interval(right: ArrayLike, groups: Sequence[Hashable]) -> tuple[float, float]:
    """Where 95 % confidence places the share p of right answers (Wilson 1927).

    (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n),   z = 1.96

    Of pictures in groups, n is the number of independent ones that would say as much (Korn and Graubard 1998).

    Args:
        right: 0 … 1 of every picture, at least one: whether it was answered rightly, or how often.
        groups: of every picture.
    """
    values = numpy.asarray(right, dtype=float)
    share = float(values.mean())
    count = _as_many_independent(values, share * (1 - share), groups)
    if count == 0:
        return 0.0, 1.0
    middle, half = share + _Z**2 / (2 * count), _Z * math.sqrt(share * (1 - share) / count + (_Z / (2 * count)) ** 2)
    scale = 1 + _Z**2 / count
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def difference_interval(first: ArrayLike, second: ArrayLike, groups: Sequence[Hashable]) -> tuple[float, float]:
    """Where 95 % confidence places the difference of two shares of the same pictures (Agresti and Min 2005).

    With d the differences, D = n mean(d), and S = n mean(d²): (D ± z √(S + 1 − D²/(n + 2))) / (n + 2),   z = 1.96

    Args:
        first, second: as `right` of `share_interval`, of the same pictures.
        groups: of every picture.
    """
    change = numpy.asarray(first, dtype=float) - numpy.asarray(second, dtype=float)
    mean, square = float(change.mean()), float((change**2).mean())
    count = _as_many_independent(change, square - mean**2, groups)
    if count == 0:
        return -1.0, 1.0
    middle = count * mean
    half = _Z * math.sqrt(count * square + 1 - middle**2 / (count + 2))
    return max(-1.0, (middle - half) / (count + 2)), min(1.0, (middle + half) / (count + 2))


def _as_many_independent(values: NDArray, variance: float, groups: Sequence[Hashable]) -> float:
    """How many independent pictures, of this variance, would say as much of the mean as these in groups.

    The variance of the mean is that of the jackknife, which leaves out one group at a time. It is an estimate from few
    groups itself, for which Student's distribution stands in the place of the normal one.
    """
    _, place, sizes = numpy.unique(_numbered(groups), return_inverse=True, return_counts=True)
    pictures, many = len(values), len(sizes)
    if many == pictures:
        return float(pictures)
    if many == 1:
        return 0.0
    without = (values.sum() - numpy.bincount(place, weights=values)) / (pictures - sizes)
    of_mean = (many - 1) / many * float(((without - values.mean()) ** 2).sum())
    groups_alike = pictures**2 / float((sizes**2).sum())  # as many of one size (Kish 1965)
    if variance < 1e-12:  # all alike, which says nothing of how alike those of a group are
        count = groups_alike
    else:
        count = min(float(pictures), variance / of_mean) if of_mean > 0 else float(pictures)
    return count * (_Z / float(stdtrit(groups_alike - 1, 0.975))) ** 2


def _numbered(groups: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(group, len(numbers)) for group in groups]
