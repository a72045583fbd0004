"""How much tested pictures say, where those of one group, such as a patient's, are alike, or classes are unequal."""

from collections.abc import Hashable, Sequence

import numpy
from numpy.typing import NDArray
from scipy.special import stdtrit

__all__ = ["Sample", "Z"]

Z = 1.96  # of 95 %


class Sample:
    """Pictures in groups, of which each counts 1/(K · the pictures of its class): K classes count alike.

    Args:
        groups: of every picture, at least one.
        classes: of every picture; without them, all pictures count alike.
    """

    def __init__(self, groups: Sequence[Hashable], classes: Sequence[Hashable] | None = None) -> None:
        self._group = numpy.array(_numbered(groups))
        self._class = numpy.array(_numbered(classes if classes is not None else [0] * len(groups)))
        self._sizes = numpy.bincount(self._class)
        self._weights = 1 / (len(self._sizes) * self._sizes[self._class])

    def mean(self, values: NDArray) -> float:
        """Of a number of every picture: the mean of the classes' means."""
        return float((self._weights * values).sum())

    def as_many_independent(self, values: NDArray, variance: float) -> float:
        """How many independent pictures, of this variance, would say as much of the mean as these."""
        alone, count = self._alone(values), _as_many(self._weights)
        return (min(count, variance / alone) if alone else count) * self.share_that_counts(values)

    def share_that_counts(self, values: NDArray) -> float:
        """The variance of the mean if pictures were independent, divided by what it is: 0 … 1.

        The latter is that of the jackknife, which leaves out one group at a time. It is an estimate from few groups
        itself, for which Student's distribution stands in the place of the normal one.
        """
        many, pictures = self._group.max() + 1, len(self._group)
        if many == pictures:
            return 1.0
        groups_alike = _as_many(numpy.bincount(self._group, weights=self._weights))
        if groups_alike < 1 + 1e-9:
            return 0.0
        alone, of_groups, unseen = self._alone(values), *self._jackknifed(values)
        share = min(1.0, alone / of_groups) if alone and of_groups > 0 else 1.0
        if unseen or not alone:  # how alike those of a group are
            share = min(share, groups_alike / _as_many(self._weights))
        return share * (Z / float(stdtrit(groups_alike - 1, 0.975))) ** 2

    def _alone(self, values: NDArray) -> float:
        """The variance of the mean of independent pictures; 0, but for rounding, is 0."""
        means = numpy.bincount(self._class, weights=values) / self._sizes
        variance = float((self._weights**2 * (values - means[self._class]) ** 2).sum())
        return variance if variance > 1e-12 / len(values) else 0.0

    def _jackknifed(self, values: NDArray) -> tuple[float, bool]:
        """The variance of the mean of pictures in groups; and whether all of some class are in one."""
        classes, many = len(self._sizes), int(self._group.max()) + 1
        pairs, place, counts = numpy.unique(
            self._group * classes + self._class, return_inverse=True, return_counts=True
        )
        group, label = numpy.divmod(pairs, classes)
        sums = numpy.bincount(self._class, weights=values)
        left = self._sizes[label] - counts
        without = (sums[label] - numpy.bincount(place, weights=values)) / numpy.maximum(left, 1)  # 0, if none is left
        means = sums / self._sizes
        change = numpy.bincount(group, weights=without - means[label])
        remaining = classes - numpy.bincount(group, weights=left == 0)
        of_rest = (means.sum() + change) / remaining
        return (many - 1) / many * float(((of_rest - means.mean()) ** 2).sum()), bool((left == 0).any())


def _as_many(weights: NDArray) -> float:
    """How many of equal weight say as much (Kish 1965)."""
    return 1 / float((weights**2).sum())


def _numbered(names: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]
