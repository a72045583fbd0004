"""Anybody's LightningDataModule as data of a run."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

import lightning
import torch
from torch import Tensor
from torch.utils.data import DistributedSampler

from gsa.data._described import DescribedData
from gsa.data._normalisation import Normalisation
from gsa.data._own_batches import ResumedBatches, SharedBatches
from gsa.data._reading import reading_of
from gsa.data._workers import read_once, sheltered

__all__ = ["BadBatch", "ImageData", "OwnData", "completed"]

_PARTS = ("train", "val", "test")
_NUMBERS = ("num_classes", "in_channels", "image_size")
_BEYOND = 1e-3  # [0, 1], by rounding


class BadBatch(ValueError):
    """What a loader gave that no network can be trained or judged on."""


@runtime_checkable
class ImageData(Protocol):
    """What a LightningDataModule must have to be trained on: three numbers, known before `setup`, and three loaders.

    Loaders give pictures [B, C, H, W], float32, and labels, int64 [B] in 0 … num_classes − 1. If it has them, these are
    used, too: `classes`, the names of the labels; `mean` and `std` by channel, after `setup`, if its pictures are
    (x − mean) / std of values x in [0, 1]; `name` and `source`, for the report; and `reading`, a dictionary of `white`,
    `channels` and `framing` as of `ImageFolderDataModule`, if x is what that reads of files, as `gsa predict` does.
    """

    num_classes: int
    in_channels: int
    image_size: int

    def prepare_data(self) -> None: ...
    def setup(self, stage: str) -> None: ...
    def train_dataloader(self) -> Any: ...
    def val_dataloader(self) -> Any: ...
    def test_dataloader(self) -> Any: ...


def completed(data: Any, seed: int) -> Any:
    """Data as a run needs them: as they are if they have it all, like ours, or as `OwnData`.

    Args:
        data: a data module of ours, or an `ImageData`.
        seed: of the run.

    Raises:
        ValueError: naming what an `ImageData` lacks, or a number that is none.
    """
    if hasattr(data, "picture_format"):
        return data
    wanted = (*_NUMBERS, *(f"{part}_dataloader" for part in _PARTS))
    if lacking := [name for name in wanted if not _has(data, name)]:
        raise ValueError(
            f"{type(data).__name__} cannot be trained on: it must be a LightningDataModule with num_classes, "
            f"in_channels, image_size and three loaders (gsa.data.ImageData), but lacks {', '.join(lacking)}"
        )
    for name in _NUMBERS:
        if not isinstance(number := getattr(data, name), Integral) or number < 1:
            square = ", the side of square pictures" if name == "image_size" else ""
            raise ValueError(f"{type(data).__name__}.{name} must be a positive integer{square}, but got {number!r}")
    return OwnData(data, seed)


def _has(data: Any, name: str) -> bool:
    """Whether it has something of its own by that name: Lightning's loaders only say that there are none."""
    found, inherited = getattr(data, name, None), getattr(lightning.LightningDataModule, name, None)
    return found is not None and (inherited is None or getattr(found, "__func__", None) is not inherited)


class OwnData(DescribedData):
    """An `ImageData` with all else that a run asks for: its sizes, its first pictures, its place after a stop.

    Before every epoch PyTorch's generator is set to a function of (seed, epoch), from which a shuffling loader draws
    its order, so that a resumed run goes on in the same one.

    Args:
        inner: the module.
        seed: of the run.
    """

    def __init__(self, inner: Any, seed: int) -> None:
        super().__init__()
        self.inner, self.seed = inner, seed
        self.num_classes, self.in_channels, self.image_size = (int(getattr(inner, name)) for name in _NUMBERS)
        self.name = getattr(inner, "name", None) or type(inner).__name__  # Lightning's own is None
        self.source = getattr(inner, "source", None) or type(inner).__module__
        self.mean, self.std = [0.0] * self.in_channels, [1.0] * self.in_channels  # until it is set up
        for name, value in reading_of(inner).items():
            setattr(self, name, value)
        self.parts: dict[str, _Part] = {}
        self._sizes: dict[str, int] = {}  # of first batches: not every loader has one for all
        self.batch_size, self.eval_batch_size = 0, 100  # the first until the loaders are asked

    def prepare_data(self) -> None:
        self.inner.prepare_data()

    def setup(self, stage: str | None = None) -> None:
        if self.parts:
            return
        self.inner.setup("fit")
        self.inner.setup("test")
        self.mean, self.std = self._by_channel("mean", self.mean), self._by_channel("std", self.std)
        parts = {}
        with torch.random.fork_rng(devices=[]):
            for part in _PARTS:
                loader = self._loader(part)
                self._sizes[part] = self._check(part, loader)
                parts[part] = _Part(loader, self.mean, self.std)
        self.parts = parts
        self.batch_size = self._sizes["train"]

    def pictures_at_once(self, part: str) -> int:
        return self._sizes[part]

    def train_dataloader(self) -> Any:
        batches = ResumedBatches(self._loader("train"), self._resumed_at, self.seed)
        return self._share(batches, *self._rank(self.batch_size), is_filled=True)

    def val_dataloader(self) -> Any:
        return self._share(self._loader("val"), *self._rank())

    def test_dataloader(self) -> Any:
        return self._share(self._loader("test"), *self._rank())

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """As the module has it; labels of every batch are looked at, and pictures that judge, as the CPU has them."""
        batch = self.inner.on_before_batch_transfer(batch, dataloader_idx)
        trainer: Any = self.trainer
        judges = trainer.validating or trainer.sanity_checking
        part = "train" if trainer.training else "val" if judges else "test"
        self._check_labels(part, batch[1])
        if part != "train" and not batch[0].isfinite().all():  # in training, a step is left out
            raise BadBatch(
                f"{type(self.inner).__name__}.{part}_dataloader() must give finite pictures, but not all are"
            )
        return batch

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        return self.inner.transfer_batch_to_device(batch, device, dataloader_idx)

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        return self.inner.on_after_batch_transfer(batch, dataloader_idx)

    def state_dict(self) -> dict[str, Any]:
        return self.inner.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.inner.load_state_dict(state_dict)

    def teardown(self, stage: str) -> None:
        self.inner.teardown(stage)

    @property
    def classes(self) -> Sequence[str]:
        """Names of the labels."""
        names = getattr(self.inner, "classes", None)
        return super().classes if names is None else [str(name) for name in names]

    def _resumed_at(self) -> tuple[int, int]:
        return (self._next_epoch(), 0) if self.trainer is None else super()._resumed_at()

    def _batches(self) -> int:
        return len(self._loader("train"))

    def class_counts(self) -> Tensor:
        """Training pictures of every class: int64 [num_classes]."""
        with torch.random.fork_rng(devices=[]):
            labels = torch.cat([labels for _, labels in read_once(self._loader("train"))])
        return torch.bincount(labels, minlength=self.num_classes)

    def _loader(self, part: str) -> Any:
        self.inner.trainer = self.trainer  # which it may ask
        loader = getattr(self.inner, f"{part}_dataloader")()
        if self._rank()[1] > 1 and isinstance(getattr(loader, "sampler", None), DistributedSampler):
            raise ValueError(
                f"{type(self.inner).__name__}.{part}_dataloader() must give all pictures to every process, which takes "
                "its share of each batch, but has a DistributedSampler: leave it out"
            )
        return sheltered(loader)

    def _share(self, loader: Any, rank: int, world: int, is_filled: bool = False) -> Any:
        return loader if world == 1 else SharedBatches(loader, rank, world, is_filled)

    def _by_channel(self, name: str, default: Sequence[float]) -> Sequence[float]:
        """The module's `mean` or `std`, if it has one."""
        given = getattr(self.inner, name, None)
        if given is None:
            return default
        with suppress(TypeError, ValueError, RuntimeError):  # of what is no list of numbers
            numbers: list[float] = torch.as_tensor(given, dtype=torch.float64).flatten().tolist()
            if len(numbers) == self.in_channels:
                return numbers
        raise ValueError(
            f"{type(self.inner).__name__}.{name} must have {self.in_channels} numbers, one for each channel, but got "
            f"{given!r}"
        )

    def _check(self, part: str, loader: Any) -> int:
        """The size of its first batch, if that is one of pictures and labels."""
        where = f"{type(self.inner).__name__}.{part}_dataloader()"
        batches = 0
        with suppress(Exception):  # of what is endless, or no loader, in words of its own
            batches = len(loader)
        if not batches:
            raise ValueError(f"{where} must know how many batches it has, at least one")
        batch = next(read_once(loader))
        if not (isinstance(batch, Sequence) and len(batch) == 2 and all(isinstance(one, Tensor) for one in batch)):
            raise ValueError(f"{where} must give pairs of pictures and labels, but gave {type(batch).__name__}")
        pictures, labels = batch
        expected = (len(labels), self.in_channels, self.image_size, self.image_size)
        bad = [] if pictures.isfinite().all() else [row for row, one in enumerate(pictures) if not one.isfinite().all()]
        if tuple(pictures.shape) != expected or pictures.dtype != torch.float32 or bad:
            raise ValueError(
                f"{where} must give finite float32 pictures of the shape {list(expected)}, but gave "
                f"{pictures.dtype} of {list(pictures.shape)}{f', not finite in the rows {bad}' if bad else ''}"
            )
        self._check_labels(part, labels)
        if part == "test":  # whose pictures are not changed at random
            self._warn_of_range(where, Normalisation(self.mean, self.std).as_read(pictures))
        return len(labels)

    def _warn_of_range(self, where: str, pictures: Tensor) -> None:
        """Say where the trained network would be shown pictures unlike these, which were not in [0, 1]."""
        least, most = pictures.min().item(), pictures.max().item()
        if least < -_BEYOND or most > 1 + _BEYOND:
            warnings.warn(
                f"{where} must give pictures (x − mean) / std of x in [0, 1], with mean {self.mean} and std {self.std} "
                f"here, but x is from {least:.3g} to {most:.3g}: gsa predict and all that loads the network will make "
                f"pictures otherwise; divide by what is white, or set {type(self.inner).__name__}.mean and std",
                stacklevel=2,
            )

    def _check_labels(self, part: str, labels: Tensor) -> None:
        wrong = f"{labels.dtype} of the shape {list(labels.shape)}"
        if labels.dtype == torch.int64 and labels.ndim == 1:
            others = labels[(labels < 0) | (labels >= self.num_classes)].unique().tolist()
            if not others:
                return
            wrong = ", ".join(map(str, others[:5])) + (" and others" if len(others) > 5 else "")
        raise BadBatch(
            f"{type(self.inner).__name__}.{part}_dataloader() must give int64 labels [B] in 0 … "
            f"{self.num_classes - 1}, the class of each picture, but gave {wrong}"
        )


class _Part(Normalisation):
    """Training, validation or test pictures, as the report looks at them."""

    files = None  # of which nobody knows

    def __init__(self, loader: Any, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(mean, std)
        self._loader = loader

    def __len__(self) -> int:
        dataset: Any = getattr(self._loader, "dataset", None)
        return (
            len(dataset) if hasattr(dataset, "__len__") else sum(len(labels) for _, labels in read_once(self._loader))
        )

    def first(self, count: int) -> tuple[Tensor, Tensor]:
        """The first `count` pictures (all, if there are fewer), not normalised, and their labels."""
        found: list[tuple[Tensor, Tensor]] = []
        seen = 0
        for batch in read_once(self._loader):
            found.append(batch)
            if (seen := seen + len(batch[1])) >= count:
                break
        pictures, labels = (torch.cat(parts)[:count] for parts in zip(*found, strict=True))
        return self.as_read(pictures), labels
