"""What every data module shares: three disjoint parts, their order, their augmentation, their checks."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from gsa._limits import PICTURES, check_limits
from gsa.data._augmentation import augment
from gsa.data._described import DescribedData
from gsa.data._division import few_of_all, few_of_groups
from gsa.data._normalisation import Normalisation
from gsa.data._order import EpochOrder, Share
from gsa.data._parts import check_parts, rows_of
from gsa.data._picture_files import PictureFiles
from gsa.data._workers import sheltered

__all__ = ["LabelledPictures", "NormalisedPictures", "PictureDataModule", "labels_of", "pictures_in_memory"]

_ROUNDED = 1e-3  # beyond [0, 1], as by a change of size


class LabelledPictures(Protocol):
    """By index, a picture [C, H, W], float in [0, 1] or uint8, and its label: what a data set is read as."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class PictureDataModule(DescribedData):
    """Labelled pictures in three parts, "train", "val" and "test".

    Subclasses say what the pictures are: the attributes below, and `load`. Everything random is a function of
    (seed, epoch, index): batches do not depend on workers, on what ran before, or on where a run was resumed. A trainer
    tells the epoch; without one, each time that training pictures are gone through is the next. Several processes need
    a trainer with use_distributed_sampler=False, as each takes its share of every batch itself.

    Attributes:
        name, source, num_classes, in_channels, image_size, mean, std: as in `DescribedData`.
        least_batches: an epoch goes through the training pictures several times, until it has so many batches.
        sizes: pictures in each part, where the data set has them fixed; `setup` refuses others.
        split_seed: of the pictures that are taken of more.
        parts: {"train", "val", "test"} → dataset of (picture, label), after `setup`.

    Args:
        batch_size: pictures a training step.
        seed: of the order and the augmentation of training pictures.
        augmentation: names out of "turns" (any angle), "stretches" (by factors of up to 1.35), "flips"
            (left–right), "crops" (shifted by up to an eighth), "randaugment" (two changes of colour or form).
        num_workers: processes that load pictures.
        eval_batch_size: pictures at a time in validation and test; the larger of batch_size and 100 when None.
        train_pictures: so many of those for training, of every class its share, in epochs of as many batches as before,
            which go through them several times; all when None. Those of one split_seed are nested, and of groups of
            pictures they are of few. Mean and standard deviation stay those of all.

    Raises:
        ValueError: an argument out of its range.
    """

    sizes: Mapping[str, int] | None = None
    least_batches: int = 0
    split_seed: int = 0

    def __init__(
        self,
        batch_size: int,
        seed: int,
        augmentation: Sequence[str],
        num_workers: int,
        eval_batch_size: int | None = None,
        train_pictures: int | None = None,
    ) -> None:
        super().__init__()
        check_limits(PICTURES, locals())
        self.batch_size, self.seed, self.num_workers = batch_size, seed, num_workers
        self.train_pictures = train_pictures
        self.augmentation = tuple(augmentation)
        self.eval_batch_size = max(batch_size, 100) if eval_batch_size is None else eval_batch_size
        self.parts: dict[str, NormalisedPictures] = {}

    def load(self) -> dict[str, LabelledPictures]:
        """The three parts, "train", "val" and "test"."""
        raise NotImplementedError

    def setup(self, stage: str | None = None) -> None:
        if self.parts:
            return
        parts = self.load()
        check_parts(self.name, parts, self.sizes, self.for_test_only)
        self._of_all = len(parts["train"])
        if self.train_pictures is not None and not self.for_test_only:
            parts["train"] = self._few(parts["train"], self.train_pictures)
        if len(parts["train"]) < self.batch_size and not self.for_test_only:
            raise ValueError(
                f"batch_size must be at most the {len(parts['train'])} training pictures, but got {self.batch_size}"
            )
        for part, dataset in parts.items():
            augmentation = self.augmentation if part == "train" else ()
            self.parts[part] = NormalisedPictures(dataset, self.mean, self.std, augmentation, self.seed)

    def train_dataloader(self) -> DataLoader[tuple[Tensor, Tensor]]:
        self.setup()
        if self.for_test_only:
            raise ValueError(f"{self.name} must have training pictures, but all are for the test")
        rank, world = self._rank(self.batch_size)
        epoch, batches = self._resumed_at()
        counted = self._next_epoch if self.trainer is None else None
        seen = batches * self.batch_size
        keeps = getattr(self.trainer, "overfit_batches", 0) > 0
        length = len(self.parts["train"])
        each = self._batches()
        order = EpochOrder(length, self.seed, epoch, seen, self.batch_size, rank, world, each, keeps, counted)
        return self._loader("train", batch_size=self.batch_size // world, sampler=order, drop_last=True)

    def val_dataloader(self) -> DataLoader[tuple[Tensor, Tensor]]:
        return self._share_of("val")

    def test_dataloader(self) -> DataLoader[tuple[Tensor, Tensor]]:
        return self._share_of("test")

    def predict_dataloader(self) -> DataLoader[tuple[Tensor, Tensor]]:
        return self._share_of("test")

    def _batches(self) -> int:
        once = self._of_all // self.batch_size  # which whoever looks for a larger size of batches may change
        return once * max(math.ceil(self.least_batches / max(once, 1)), 1)

    def pictures_of(self, batches: int) -> int:
        return batches * self.batch_size

    def class_counts(self) -> Tensor:
        """Training pictures of every class: int64 [num_classes]."""
        return torch.bincount(torch.tensor(labels_of(self.parts["train"].dataset)), minlength=self.num_classes)

    def _few(self, pictures: Any, count: int) -> Any:
        """So many of them, as `train_pictures` says."""
        labels = labels_of(pictures)
        classes = len(set(labels))
        if not classes <= count <= len(labels):
            raise ValueError(
                f"train_pictures must be at least the {classes} classes and at most the {len(labels)} training "
                f"pictures, but got {count}"
            )
        held, all_rows = rows_of(pictures)
        if self.group_of and isinstance(held, PictureFiles):
            rows = few_of_groups(labels, [held.groups[row] for row in all_rows], count, self.split_seed)
        else:
            rows = few_of_all(labels, count, self.split_seed)
        return TensorDataset(*pictures[rows]) if isinstance(pictures, TensorDataset) else Subset(pictures, rows)

    def _share_of(self, part: str) -> DataLoader[tuple[Tensor, Tensor]]:
        """Every picture in one of the processes, and in one only."""
        self.setup()
        rank, world = self._rank()
        batch_size = max(self.eval_batch_size // world, 1)
        return self._loader(part, batch_size=batch_size, sampler=Share(len(self.parts[part]), rank, world))

    def _loader(self, part: str, **options: Any) -> DataLoader[tuple[Tensor, Tensor]]:
        workers = self.num_workers
        options |= {"num_workers": workers, "persistent_workers": workers > 0, "pin_memory": self._is_on_gpu()}
        return sheltered(DataLoader(self.parts[part], collate_fn=_as_batch, **options))

    def _is_on_gpu(self) -> bool:
        """Whether batches go to a GPU: from pinned memory, so that their copies do not wait for what it is at."""
        device = getattr(getattr(self.trainer, "strategy", None), "root_device", None)
        return device is not None and device.type == "cuda"


class NormalisedPictures(Normalisation, Dataset):
    """Pictures, augmented and normalised; the key is an index, or (round, index), which augmentation depends on."""

    def __init__(
        self,
        dataset: LabelledPictures,
        mean: Sequence[float],
        std: Sequence[float],
        augmentation: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        super().__init__(mean, std)
        self.dataset, self.augmentation, self.seed = dataset, tuple(augmentation), seed

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, key: int | tuple[int, int]) -> tuple[Tensor, int]:
        pictures, labels = self.__getitems__([key])
        return pictures[0], int(labels)

    def __getitems__(self, keys: Sequence[int | tuple[int, int]]) -> tuple[Tensor, Tensor]:
        """A batch, [N, C, H, W] and int64 [N]: read together where the data set can, and normalised together."""
        places = [key if isinstance(key, tuple) else (0, key) for key in keys]
        pictures, labels = self._read([index for _, index in places])
        if self.augmentation:
            randoms = [numpy.random.default_rng((self.seed, *place)) for place in places]
            pictures = augment(pictures, self.augmentation, randoms)
        return self.normalise(pictures), labels

    @property
    def files(self) -> list[tuple[str, int]] | None:
        """Path and label of every picture; None of pictures that are not in files."""
        held, rows = rows_of(self.dataset)
        return [held.files[row] for row in rows] if isinstance(held, PictureFiles) else None

    def first(self, count: int) -> tuple[Tensor, Tensor]:
        """The first `count` pictures (all, if there are fewer), not normalised, and their labels."""
        return self._read(list(range(min(count, len(self)))))

    def _read(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """Pictures [N, C, H, W] in [0, 1], and their labels."""
        if isinstance(self.dataset, TensorDataset):
            rows, labels = (tensor[indices] for tensor in self.dataset.tensors)
            return _in_unit(rows), labels
        together = getattr(self.dataset, "__getitems__", None)
        found = together(indices) if together else [self.dataset[index] for index in indices]
        pictures = torch.stack([_in_unit(picture) for picture, _ in found])
        if any(picture.is_floating_point() for picture, _ in found):
            held, places = rows_of(self.dataset)
            _refuse_beyond(pictures, type(held).__name__, [places[index] for index in indices], _ROUNDED)
            pictures = pictures.clamp(0, 1)
        return pictures, torch.tensor([int(label) for _, label in found])


def _as_batch(batch: Any) -> Any:
    """Nothing is left to collate."""
    return batch


def _in_unit(pictures: Tensor) -> Tensor:
    return pictures / 255 if pictures.dtype == torch.uint8 else pictures


def labels_of(dataset: Any) -> list[int]:
    """The labels of a data set; pictures are read only where it does not keep them apart."""
    dataset, rows = rows_of(dataset)
    if isinstance(dataset, TensorDataset):
        return dataset.tensors[1][rows].tolist()
    labels = getattr(dataset, "labels", None)
    return [labels[row] if labels else int(dataset[row][1]) for row in rows]


def pictures_in_memory(pictures: Tensor, labels: Tensor, num_classes: int, where: str) -> TensorDataset:
    """Pictures that have been looked through: [N, C, H, W] in [0, 1] or uint8, labels int64 [N].

    Raises:
        ValueError: a pixel that is not a number or out of range, or a label that is not a class, with its row.
    """
    if len(pictures) != len(labels):
        raise ValueError(f"{where}: {len(pictures)} pictures, but {len(labels)} labels")
    if labels.ndim != 1 or labels.dtype != torch.int64:
        raise ValueError(f"{where}: labels must be int64 [N], but got {labels.dtype} {list(labels.shape)}")
    if pictures.is_floating_point():
        _refuse_beyond(pictures, where)
    _refuse((labels < 0) | (labels >= num_classes), where, f"labels must be 0 … {num_classes - 1}", labels)
    return TensorDataset(pictures, labels)


def _refuse_beyond(pictures: Tensor, where: str, rows: Sequence[int] | None = None, rounded: float = 0.0) -> None:
    """Pictures [N, C, H, W] that are not numbers in [0, 1], of these rows of a data set."""
    low, high = pictures.flatten(1).amin(1), pictures.flatten(1).amax(1)
    # written so that NaN, which amin and amax hand on, is refused too
    wrong = ~((low >= -rounded) & (high <= 1 + rounded))
    _refuse(wrong, where, "pixels must be numbers in [0, 1]", torch.stack((low, high), 1), rows)


def _refuse(wrong: Tensor, where: str, rule: str, values: Tensor, rows: Sequence[int] | None = None) -> None:
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise ValueError(f"{where}, row {rows[row] if rows else row}: {rule}, but got {values[row].tolist()}")
