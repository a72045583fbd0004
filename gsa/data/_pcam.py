"""PatchCamelyon, in its official HDF5 files."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy
from filelock import FileLock
from torch import Tensor
from torch.utils.data import Dataset
from torchvision.datasets import PCAM
from torchvision.transforms.functional import pil_to_tensor

from gsa.data._pictures import LabelledPictures, PictureDataModule

__all__ = ["PCamDataModule"]


class PCamDataModule(PictureDataModule):
    """Patches of lymph-node sections, 96×96, with and without tumour: 262 144 / 32 768 / 32 768.

    Args:
        root: holds pcam/camelyonpatch_level_2_split_{train,valid,test}_{x,y}.h5; torchvision reads them.
        download: fetch the files when they are not there (needs `gdown`).
        batch_size, seed, augmentation, num_workers, eval_batch_size: as in `PictureDataModule`.
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
        root: str | os.PathLike = "data",
        download: bool = False,
        batch_size: int = 16,
        seed: int = 0,
        augmentation: Sequence[str] = (),
        num_workers: int = 0,
        eval_batch_size: int | None = None,
    ) -> None:
        super().__init__(batch_size, seed, augmentation, num_workers, eval_batch_size)
        self.root, self.download = Path(root), download

    def prepare_data(self) -> None:
        if self.download:
            self.root.mkdir(parents=True, exist_ok=True)
            with FileLock(self.root / ".download.lock"):  # several processes or jobs
                for split in ("train", "val", "test"):
                    self._open(split, download=True)

    def load(self) -> dict[str, LabelledPictures]:
        parts = {split: self._open(split) for split in ("train", "val", "test")}
        for name in ("train", "valid", "test"):
            stem = self.root / "pcam" / f"camelyonpatch_level_2_split_{name}"
            _check(Path(f"{stem}_x.h5"), Path(f"{stem}_y.h5"))
        return {split: _Patches(patches) for split, patches in parts.items()}

    def _open(self, split: str, download: bool = False) -> LabelledPictures:
        try:
            return PCAM(self.root, split=split, download=download)
        except RuntimeError as error:
            if download:
                raise FileNotFoundError(f"PatchCamelyon's {split} files could not be fetched: {error}") from error
            raise FileNotFoundError(
                f"PatchCamelyon's {split} files were not found under {self.root / 'pcam'}; set data.root, or let them "
                "be fetched with data.download=true"
            ) from error


class _Patches(Dataset):
    """torchvision's pictures and labels, as tensors."""

    def __init__(self, patches: LabelledPictures) -> None:
        self.patches = patches

    def __len__(self) -> int:
        return len(self.patches)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        picture, label = self.patches[index]
        return pil_to_tensor(picture), label


def _check(pictures: Path, labels: Path) -> None:
    """Refuse files that are not what they should be, before anything is trained on them.

    Raises:
        ValueError: a file that is not HDF5, an array of another shape or type, a label that is neither 0 nor 1.
    """
    with _opened(pictures, "x", (96, 96, 3)) as x, _opened(labels, "y", (1, 1, 1)) as y:
        count, classes = len(x), y[:].reshape(-1)
    if count != len(classes):
        raise ValueError(f"{pictures} holds {count} patches, but {labels} {len(classes)} labels")
    wrong = classes > 1
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{labels}, row {row}: labels must be 0 or 1, but got {classes[row]}")


@contextmanager
def _opened(file: Path, key: str, item: tuple[int, ...]) -> Iterator[h5py.Dataset]:
    """The array `key` of a file, [N, *item] of bytes."""
    try:
        with h5py.File(file) as opened:
            array = opened.get(key)
            if not isinstance(array, h5py.Dataset) or array.shape[1:] != item or array.dtype != numpy.uint8:
                found = f"{array.shape} of {array.dtype}" if isinstance(array, h5py.Dataset) else sorted(opened)
                raise ValueError(f"{file} should hold {key!r}: (N, {str(item)[1:-1]}) of uint8, but holds {found}")
            yield array
    except OSError as error:
        raise ValueError(f"{file} is not a whole HDF5 file: {error}") from error
