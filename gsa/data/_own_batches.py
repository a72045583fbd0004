"""Batches of anybody's loader: in an order that can be gone on with, and shared out among processes."""

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch
from lightning.pytorch.utilities.seed import isolate_rng

__all__ = ["ResumedBatches", "SharedBatches"]


class _OfLoader:
    """Batches that a loader gives; Lightning ends its workers as it does those of a `DataLoader`."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return len(self._loader)

    @property
    def _iterator(self) -> Any:
        """What has the workers of a loader that keeps them from epoch to epoch."""
        return getattr(self._loader, "_iterator", None)

    @_iterator.setter
    def _iterator(self, none: None) -> None:
        if self._iterator is not None:
            self._loader._iterator = none


class ResumedBatches(_OfLoader):
    """A loader whose order is a function of (seed, epoch), and that leaves out what a resumed epoch has seen.

    What it draws for a batch, as transforms do, is one of (seed, epoch, batch), whatever steps draw between batches.
    """

    def __init__(self, loader: Any, resumed_at: Callable[[], tuple[int, int]], seed: int) -> None:
        super().__init__(loader)
        self._resumed_at, self._seed = resumed_at, seed
        self.batch_size = getattr(loader, "batch_size", None)

    def __iter__(self) -> Iterator[Any]:
        epoch, seen = self._resumed_at()
        self._iterator = None  # workers that are kept would go on with what they drew in the epoch before
        with self._drawing(f"{epoch}", torch.manual_seed):  # on all devices
            batches = iter(self._loader)
            batch = next(batches, None)  # with which loaders draw the order of all
        number = 0
        while batch is not None:
            if number >= seen:
                yield batch
            number += 1
            with self._drawing(f"{epoch} {number}", torch.default_generator.manual_seed):
                batch = next(batches, None)

    @contextmanager
    def _drawing(self, place: str, set_seed: Callable[[int], object]) -> Iterator[None]:
        """While inside, what is drawn is a function of the seed and a place, and nothing drawn outside changes."""
        seed = int.from_bytes(hashlib.sha256(f"{self._seed} {place}".encode()).digest()[:8], "big") >> 1
        with isolate_rng(include_cuda=False):
            set_seed(seed)
            random.seed(seed)
            numpy.random.seed(seed % 2**32)
            for owner in (self._loader, getattr(self._loader, "sampler", None)):  # of which generator it draws
                if isinstance(generator := getattr(owner, "generator", None), torch.Generator):
                    generator.manual_seed(seed)
            yield


class SharedBatches(_OfLoader):
    """Of every batch the share of one of several processes: every `world`-th picture, counted over all batches.

    Every process reads all of them, in an order that has to be the same in all, as one that PyTorch's generators draw.

    Args:
        loader: of pairs of pictures and labels.
        rank, world: which of how many processes this is.
        is_filled: whether pictures are repeated in a batch that cannot be shared out evenly, as training wants it;
            else every picture is in one process, and in one only.
    """

    def __init__(self, loader: Any, rank: int, world: int, is_filled: bool) -> None:
        super().__init__(loader)
        self._rank, self._world, self._is_filled = rank, world, is_filled

    def __iter__(self) -> Iterator[Any]:
        seen = 0
        for pictures, labels in self._loader:
            count = len(labels)
            if self._is_filled:
                count += -count % self._world
            mine = torch.arange((self._rank - seen) % self._world, count, self._world) % max(len(labels), 1)
            seen += count
            if len(mine):
                yield pictures[mine], labels[mine]
