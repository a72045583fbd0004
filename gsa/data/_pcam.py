"""PatchCamelyon, in its official HDF5 files."""

import os
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from torchvision.datasets import PCAM

from gsa._limits import SPLIT, check_limits
from gsa.data._download import alone_in
from gsa.data._patches import Patches
from gsa.data._pictures import LabelledPictures, PictureDataModule

__all__ = ["PCamDataModule"]

_FILES = {"train": "train", "val": "valid", "test": "test"}  # what they are called


class PCamDataModule(PictureDataModule):
    """Patches of lymph-node sections, 96×96, with and without tumour: 262 144 / 32 768 / 32 768.

    Args:
        root: holds pcam/camelyonpatch_level_2_split_{train,valid,test}_{x,y}.h5.
        download: fetch the files when they are not there (needs `gdown`).
        split_seed: of `train_pictures`.
        batch_size, seed, augmentation, num_workers, eval_batch_size, train_pictures: as in `PictureDataModule`.
    """

    name = "pcam"
    source = "official files"
    num_classes = 2
    classes = ("no tumour", "tumour")
    in_channels = 3
    image_size = 96
    mean = (0.7008, 0.5384, 0.6916)  # of the training patches
    std = (0.2350, 0.2774, 0.2129)

    def __init__(
        self,
        root: str | os.PathLike[str] = "data",
        download: bool = False,
        batch_size: int = 16,
        seed: int = 0,
        augmentation: Sequence[str] = (),
        num_workers: int = 0,
        eval_batch_size: int | None = None,
        train_pictures: int | None = None,
        split_seed: int = 0,
    ) -> None:
        super().__init__(batch_size, seed, augmentation, num_workers, eval_batch_size, train_pictures)
        check_limits(SPLIT, locals())
        self.root, self.download, self.split_seed = Path(root), download, split_seed

    def prepare_data(self) -> None:
        if not self.download or all(self._is_there(split) for split in _FILES):
            return
        with alone_in(self.root):
            for split in _FILES:
                try:
                    PCAM(self.root, split=split, download=True)
                    for file in self._files(split):  # which torchvision has unpacked
                        file.with_name(f"{file.name}.gz").unlink(missing_ok=True)
                except RuntimeError as error:
                    raise FileNotFoundError(f"PatchCamelyon's {split} files could not be fetched: {error}") from error

    def load(self) -> dict[str, LabelledPictures]:
        for file in (file for split in _FILES for file in self._files(split)):
            if not file.is_file():
                raise FileNotFoundError(self._missing(file))
        parts = {split: Patches(*self._files(split)) for split in _FILES}
        self.digests = {split: patches.digest for split, patches in parts.items()}
        for one, other in combinations(_FILES, 2):
            if self.digests[one] == self.digests[other]:
                places = " and ".join(str(self._files(split)[0]) for split in (one, other))
                raise ValueError(f"PatchCamelyon's parts must have no pictures in common, but {places} hold the same")
        return dict(parts)

    def _missing(self, file: Path) -> str:
        """What there is in place of a file."""
        message = f"PatchCamelyon's file {file} is not there"
        if file.with_name(f"{file.name}.gz").is_file():
            return f"{message}, but {file.name}.gz is: gunzip {file.parent}/*.gz"
        if (self.root / file.name).is_file():
            return f"{message}, but is in {self.root}: set data.root to the folder that holds the folder pcam"
        return f"{message}; set data.root, or let the files be fetched with data.download=true"

    def _files(self, split: str) -> tuple[Path, Path]:
        """Of pictures and labels."""
        stem = self.root / "pcam" / f"camelyonpatch_level_2_split_{_FILES[split]}"
        return Path(f"{stem}_x.h5"), Path(f"{stem}_y.h5")

    def _is_there(self, split: str) -> bool:
        return all(file.is_file() for file in self._files(split))
