"""CIFAR-10, in its official files."""

import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy
import torch
from torch.utils.data import Subset, TensorDataset
from torchvision.datasets import CIFAR10

from gsa._limits import SPLIT, check_limits
from gsa.data._download import alone_in, check_digest, fetch
from gsa.data._pictures import LabelledPictures, PictureDataModule, pictures_in_memory

__all__ = ["CIFAR10DataModule"]

_SIZES = {"train": 45_000, "val": 5_000, "test": 10_000}
MOST_BYTES = 170_498_071  # of the official archive


class CIFAR10DataModule(PictureDataModule):
    """Colour pictures of ten classes, 32×32: 45 000 for training, 5 000 for validation, 10 000 for the test.

    The official files are pickles, which can run code; torchvision opens them only if their MD5 are the official ones.
    So their authors are trusted, MD5, and torchvision's list of digests, but not the folder.

    Args:
        root: folder of the data.
        download: fetch the data when they are not there.
        split_seed: of the validation part; part of the data's identity, apart from `seed`.
        batch_size, seed, augmentation, num_workers, eval_batch_size, train_pictures: as in `PictureDataModule`.
    """

    name = "cifar10"
    source = "official files"
    num_classes = 10
    classes = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
    in_channels = 3
    image_size = 32
    sizes = _SIZES
    mean = (0.4914, 0.4822, 0.4465)  # of the 50 000 training pictures
    std = (0.2470, 0.2435, 0.2616)

    def __init__(
        self,
        root: str | os.PathLike[str] = "data",
        download: bool = False,
        batch_size: int = 24,
        split_seed: int = 0,
        seed: int = 0,
        augmentation: Sequence[str] = (),
        num_workers: int = 0,
        eval_batch_size: int | None = None,
        train_pictures: int | None = None,
    ) -> None:
        super().__init__(batch_size, seed, augmentation, num_workers, eval_batch_size, train_pictures)
        check_limits(SPLIT, locals())
        self.root, self.download, self.split_seed = Path(root), download, split_seed

    def prepare_data(self) -> None:
        if not self.download or self._is_there():
            return
        with alone_in(self.root):
            if not self._is_there():
                self._fetch()

    def _fetch(self) -> None:
        archive = self.root / CIFAR10.filename
        try:
            check_digest(archive, CIFAR10.tgz_md5)
        except (OSError, ValueError):
            fetch(CIFAR10.url, archive, CIFAR10.tgz_md5, MOST_BYTES)
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(self.root, filter="data")  # nothing outside the folder, no devices
        except (tarfile.TarError, OSError, EOFError) as error:
            raise ValueError(f"{archive} could not be unpacked: {error}") from error
        if not self._is_there():
            raise ValueError(f"{archive} could not be unpacked: its files are not those of CIFAR-10")

    def load(self) -> dict[str, LabelledPictures]:
        training, test = self._read(train=True), self._read(train=False)
        order = numpy.random.default_rng(self.split_seed).permutation(len(training))
        return {
            "train": Subset(training, order[5000:].tolist()),
            "val": Subset(training, order[:5000].tolist()),
            "test": test,
        }

    def _is_there(self) -> bool:
        try:
            return bool(CIFAR10(self.root))
        except RuntimeError:
            return False

    def _read(self, train: bool) -> TensorDataset:
        try:
            files = CIFAR10(self.root, train=train)
        except RuntimeError as error:
            raise FileNotFoundError(
                f"CIFAR-10's files were not found whole under {self.root / CIFAR10.base_folder}; set data.root, let "
                "them be fetched with data.download=true, or use pictures in folders with data=imagefolder"
            ) from error
        pictures = torch.from_numpy(files.data).movedim(-1, 1)
        return pictures_in_memory(pictures, torch.tensor(files.targets), self.num_classes, str(self.root))
