"""Anybody's pictures, in one folder a class."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy
from torch.utils.data import Subset
from torchvision.datasets import ImageFolder
from torchvision.datasets.folder import IMG_EXTENSIONS
from torchvision.transforms.functional import pil_to_tensor

from gsa.data._pictures import LabelledPictures, PictureDataModule
from gsa.files.pictures import read_picture

__all__ = ["ImageFolderDataModule"]


class ImageFolderDataModule(PictureDataModule):
    """Pictures at root/{train,val,test}/<class>/*; without a folder val, a share of train is set apart.

    Pictures are PNG, JPEG, TIFF, BMP, WebP or GIF (its first frame) of at most 100 million pixels, read as RGB; the
    shorter side is scaled to `size`, and the centre cut out. Files whose names do not end as pictures' do are no part.

    Args:
        root: holds the folders train, test and perhaps val, each with the same classes.
        size: side of the pictures in pixels.
        val_share: of the training pictures, where there is no folder val.
        split_seed: of that share; part of the data's identity, apart from `seed`.
        batch_size, seed, augmentation, num_workers, eval_batch_size: as in `PictureDataModule`.

    Raises:
        ValueError: an argument out of its range; folders whose classes differ; a file that is not a picture.
        FileNotFoundError: no such folders.
    """

    name = "imagefolder"
    in_channels = 3
    mean = (0.5, 0.5, 0.5)
    std = (0.25, 0.25, 0.25)

    def __init__(
        self,
        root: str | os.PathLike = "data",
        size: int = 32,
        val_share: float = 0.1,
        batch_size: int = 32,
        split_seed: int = 0,
        seed: int = 0,
        augmentation: Sequence[str] = (),
        num_workers: int = 0,
        eval_batch_size: int | None = None,
    ) -> None:
        super().__init__(batch_size, seed, augmentation, num_workers, eval_batch_size)
        if size < 1:
            raise ValueError(f"size must be at least 1 pixel, but got {size}")
        if not 0 < val_share < 1:
            raise ValueError(f"val_share must be between 0 and 1, but got {val_share}")
        self.root, self.image_size, self.val_share, self.split_seed = Path(root), size, val_share, split_seed
        self.source = self.root.name

    @property
    def num_classes(self) -> int:  # type: ignore[override]
        """Number of folders under train."""
        return len(self._classes("train"))

    @property
    def classes(self) -> list[str]:
        """Names of the folders under train."""
        return self._classes("train")

    def load(self) -> dict[str, LabelledPictures]:
        classes = self._classes("train")
        named = ["train", "test"] + ["val"] * (self.root / "val").is_dir()
        for part in named:
            if (found := self._classes(part)) != classes:
                raise ValueError(f"{self.root / part} should hold the classes of train, {classes}, but holds {found}")
        self._check_places([self.root / part / name for part in named for name in classes])
        read = partial(read_picture, mode="RGB", size=self.image_size)
        parts = {part: ImageFolder(self.root / part, pil_to_tensor, None, read, _is_picture) for part in named}
        if "val" not in parts:
            training = parts["train"]
            order = numpy.random.default_rng(self.split_seed).permutation(len(training))
            count = max(round(self.val_share * len(training)), 1)
            parts["val"] = Subset(training, order[:count].tolist())
            parts["train"] = Subset(training, order[count:].tolist())
        return parts

    def _classes(self, part: str) -> list[str]:
        folder = self.root / part
        if not folder.is_dir():
            raise FileNotFoundError(
                f"pictures are read from {self.root}/{{train,test}}/<class>/, but {folder} is not a folder"
            )
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())

    def _check_places(self, folders: list[Path]) -> None:
        """A folder that is a link to another one would put the same pictures into two parts or classes."""
        found: dict[Path, Path] = {}
        for folder in folders:
            if (other := found.setdefault(folder.resolve(), folder)) != folder:
                raise ValueError(f"every class of every part must have a folder of its own, but {folder} is {other}")


def _is_picture(path: str) -> bool:
    return path.lower().endswith((*IMG_EXTENSIONS, ".gif"))
