"""How far a share of pictures, or an area under a ROC curve, may be off by chance."""

import math
from collections.abc import Hashable, Sequence

import numpy
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import bisect

from gsa.report._sample import Sample, Z

__all__ = ["area_interval", "difference_interval", "share_interval"]

_NEAR = 1e-12  # to 0 and 1, which solve the equation of an area there, too


def share_interval(
    right: ArrayLike, groups: Sequence[Hashable], classes: Sequence[Hashable] | None = None
) -> tuple[float, float]:
    """Where 95 % confidence places the share p of right answers (Wilson 1927).

    (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n),   z = 1.96

    Of pictures in groups, or of classes that count alike, n is the number of independent pictures that would say as
    much (Korn and Graubard 1998).

    Args:
        right: 0 … 1 of every picture, at least one: whether it was answered rightly, or how often.
        groups: of every picture.
        classes: of every picture, if every class is to count alike (balanced accuracy).
    """
    values, sample = numpy.asarray(right, dtype=float), Sample(groups, classes)
    share = sample.mean(values)
    count = sample.as_many_independent(values, share * (1 - share))
    if count == 0:
        return 0.0, 1.0
    middle, half = share + Z**2 / (2 * count), Z * math.sqrt(share * (1 - share) / count + (Z / (2 * count)) ** 2)
    scale = 1 + Z**2 / count
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def difference_interval(
    first: ArrayLike, second: ArrayLike, groups: Sequence[Hashable], classes: Sequence[Hashable] | None = None
) -> tuple[float, float]:
    """Where 95 % confidence places the difference of two shares of the same pictures (Agresti and Min 2005).

    With d the differences, D = n mean(d), and S = n mean(d²): (D ± z √(S + 1 − D²/(n + 2))) / (n + 2),   z = 1.96

    Args:
        first, second: as `right` of `share_interval`, of the same pictures.
        groups, classes: as there.
    """
    change, sample = numpy.asarray(first, dtype=float) - numpy.asarray(second, dtype=float), Sample(groups, classes)
    mean, square = sample.mean(change), sample.mean(change**2)
    count = sample.as_many_independent(change, square - mean**2)
    if count == 0:
        return -1.0, 1.0
    middle = count * mean
    half = Z * math.sqrt(count * square + 1 - middle**2 / (count + 2))
    return max(-1.0, (middle - half) / (count + 2)), min(1.0, (middle + half) / (count + 2))


def area_interval(scores: ArrayLike, positive: ArrayLike, groups: Sequence[Hashable]) -> tuple[float, float]:
    """Where 95 % confidence places the area A under the ROC curve (Newcombe 2006, method 5).

    The θ on either side for which |θ − A| = z √V, with m pictures of one class and n of the other:

    V = θ(1 − θ) (1 + h (1 − θ)/(2 − θ) + h θ/(1 + θ)) / mn,   h = (m + n)/2 − 1

    Of pictures in groups, m and n are smaller by as much as the groups raise the variance of A, which is that of the
    shares of the other class that each picture is on the right side of (DeLong 1988; in groups, Obuchowski 1997).

    Args:
        scores: of every picture, the larger, the more likely it is of the class sought.
        positive: of every picture, whether it is of that class; some are, and some are not.
        groups: of every picture.
    """
    values, sought = numpy.asarray(scores, dtype=float), numpy.asarray(positive, dtype=bool)
    beaten = numpy.where(sought, _below(values, values[~sought]), 1 - _below(values, values[sought]))
    area, count = float(beaten[sought].mean()), Sample(groups, sought.tolist()).share_that_counts(beaten)
    if count == 0:
        return 0.0, 1.0
    m, n = count * sought.sum(), count * (~sought).sum()
    h = max((m + n) / 2 - 1, 0.0)

    def apart(theta: float) -> float:
        variance = theta * (1 - theta) * (1 + h * (1 - theta) / (2 - theta) + h * theta / (1 + theta)) / (m * n)
        return abs(theta - area) - Z * math.sqrt(variance)

    low = bisect(apart, 0, min(area, 1 - _NEAR)) if area > 0 else 0.0
    high = bisect(apart, max(area, _NEAR), 1) if area < 1 else 1.0
    return float(low), float(high)


def _below(values: NDArray, others: NDArray) -> NDArray:
    """The share of the others that each value exceeds, with half of those that are as large."""
    ordered = numpy.sort(others)
    return (ordered.searchsorted(values, "left") + ordered.searchsorted(values, "right")) / (2 * len(ordered))
