"""In which order training pictures are gone through."""

import itertools
from collections.abc import Callable, Iterator

import numpy
from torch.utils.data import SequentialSampler

__all__ = ["EpochOrder", "Share"]


class Share(SequentialSampler):
    """Indices of one of several processes: every `world`-th from `rank` on.

    As `EpochOrder`, it is sequential to Lightning, which with overfit_batches exchanges all other samplers for one that
    gives every process the same.
    """

    def __init__(self, length: int, rank: int = 0, world: int = 1) -> None:
        self.data_source = self.indices = range(rank, length, world)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)


class EpochOrder(SequentialSampler):
    """Every index once a round, in an order that is a function of (seed, round); yields (round, index).

    Rounds are counted over all epochs; most often an epoch is one. They are cut into batches, without a last one that
    is not full; each process is given its share of every batch. Lightning tells the epoch before each one begins.

    Args:
        length: number of indices.
        seed: of the order.
        epoch: the first one.
        seen: indices of the first epoch that are left out, because a run that is resumed in its midst has seen them.
        batch_size: of all processes together.
        rank, world: which of how many processes this is.
        batches: of an epoch, which may end within a round; those of one round when None.
        keeps: whether all epochs have the order of the first, as those that overfit.
        counted: gives the next epoch, each time that it is begun, until somebody tells it; the first one when None.
    """

    def __init__(
        self,
        length: int,
        seed: int,
        epoch: int = 0,
        seen: int = 0,
        batch_size: int = 1,
        rank: int = 0,
        world: int = 1,
        batches: int | None = None,
        keeps: bool = False,
        counted: Callable[[], int] | None = None,
    ) -> None:
        self.length, self.seed, self.epoch = length // batch_size * batch_size, seed, epoch
        self.count = self.length if batches is None else batches * batch_size
        self.rounds = -(-self.count // self.length)
        self.resumed, self.seen = epoch, seen
        self.batch_size, self.rank, self.world = batch_size, rank, world
        self.data_source, self.keeps, self.counted = range(length), keeps, counted

    def set_epoch(self, epoch: int) -> None:
        self.epoch, self.counted = epoch, None

    def __len__(self) -> int:
        return self.count // self.world

    def __iter__(self) -> Iterator[tuple[int, int]]:  # type: ignore[override]  # a round goes with each
        epoch = self.epoch if self.counted is None else self.counted()
        seen = self.seen if epoch == self.resumed else 0
        return itertools.islice(self._from(epoch, seen), (self.count - seen) // self.world)

    def _from(self, epoch: int, seen: int) -> Iterator[tuple[int, int]]:
        for one in range(seen // self.length, self.rounds):
            number = one if self.keeps else epoch * self.rounds + one
            order = numpy.random.default_rng((self.seed, number)).permutation(len(self.data_source)).tolist()
            for start in range(max(seen - one * self.length, 0), self.length, self.batch_size):
                for index in order[start + self.rank : start + self.batch_size : self.world]:
                    yield number, index
