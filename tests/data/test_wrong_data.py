"""What is missing or wrong in the data of others is named before it is trained on."""

import lightning
import numpy
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from gsa.data import BadBatch, completed
from gsa.runner import ConfigError, build, check, train
from gsa.training import NotFinite
from tests.data.test_own_data import Stripes


class Nothing(lightning.LightningDataModule):
    num_classes = 2


class Wrong(Stripes):
    image_size = 14


@pytest.mark.parametrize("target, message", [
    ("Nothing", "Nothing cannot be trained on.*but lacks in_channels, image_size"),
    ("Wrong", r"Wrong.train_dataloader\(\) must give finite float32 pictures of the shape \[16, 1, 14, 14\], but gave"),
])  # fmt: skip
def test_what_is_missing_or_wrong_is_named(configured, target, message):
    with pytest.raises(ConfigError, match="data._target_ must be given"):
        build(configured(target="???"))
    with pytest.raises(ConfigError, match=message):
        train(configured(target=f"tests.data.test_wrong_data.{target}"))


def test_batches_that_several_processes_cannot_share_are_refused_before_they_start(configured):
    with pytest.raises(ConfigError, match="data.batch_size must be divisible by the 3 processes, but got 16"):
        train(configured("trainer=ddp", "trainer.devices=3", "trainer.accelerator=cpu"))


class Mislabelled(Stripes):
    """One picture, behind the first batch, is of a class that there is not; on a GPU, that would be the end of it."""

    part = "train"

    def _loader(self, seed, **options):
        loader = super()._loader(seed, **options | {"shuffle": False})
        if seed == ("train", "val", "test").index(self.part):
            loader.dataset.tensors[1][-1] = 2
        return loader


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_labels_of_every_batch_are_looked_at(configured, monkeypatch, part):
    monkeypatch.setattr(Mislabelled, "part", part)
    message = rf"Mislabelled.{part}_dataloader\(\) must give int64 labels \[B\] in 0 … 1, .*but gave 2$"
    with pytest.raises(BadBatch, match=message):
        train(configured(target="tests.data.test_wrong_data.Mislabelled"))


class Unknown(Stripes):
    """With a pixel that is not known, in a picture after the first batch."""

    part = "train"

    def _loader(self, seed, **options):
        loader = super()._loader(seed, **options | {"shuffle": False})
        if seed == ("train", "val", "test").index(self.part):
            loader.dataset.tensors[0][20:50, 0, 3, 3] = float("nan")
        return loader


@pytest.mark.parametrize("part, refused, message", [
    ("train", NotFinite, "3 steps in a row .* epoch 0: its batch. .* before them. Look at the data$"),
    ("val", BadBatch, r"Unknown.val_dataloader\(\) must give finite pictures, but not all are"),
    ("test", BadBatch, r"Unknown.test_dataloader\(\) must give finite pictures, but not all are"),
])  # fmt: skip
def test_pictures_that_are_not_known_end_a_run(configured, monkeypatch, part, refused, message):
    monkeypatch.setattr(Unknown, "part", part)
    with pytest.raises(refused, match=message):
        train(configured(target="tests.data.test_wrong_data.Unknown"))


def test_a_recipe_that_brings_keys_of_other_data_is_told_of(configured):
    """Planted: the one that brings none."""
    check(configured("recipe=own"))
    with pytest.raises(ConfigError, match="unknown key 'data.size' .* takes count, batch_size; if a recipe brings it"):
        check(configured("recipe=imagefolder"))


class Angles(Stripes):
    """Two numbers of every picture, which are no class."""

    def _loader(self, seed, **options):
        pictures, labels = super()._loader(seed).dataset.tensors
        return DataLoader(TensorDataset(pictures, torch.stack((labels.cos(), labels.sin()), 1)), self.batch_size)


def test_what_is_no_label_is_told_by_its_shape(configured):
    """A map for every picture would be millions of numbers."""
    with pytest.raises(
        ConfigError, match=r"the class of each picture, but gave torch.float32 of the shape \[\d+, 2\]$"
    ):
        train(configured(target="tests.data.test_wrong_data.Angles"))


class Doubles(Stripes):
    def _loader(self, seed, **options):
        pictures, labels = super()._loader(seed).dataset.tensors
        return DataLoader(TensorDataset(pictures.double(), labels), self.batch_size)


class Holed(Stripes):
    """Not a number in one of the first pictures."""

    def train_dataloader(self):
        loader = self._loader(0)
        loader.dataset.tensors[0][3, 0, 5, 5] = float("nan")
        return loader


class Endless(Stripes):
    def train_dataloader(self):
        class Stream(IterableDataset):
            def __iter__(self):
                return iter(())

        return DataLoader(Stream(), 8)


class Worded(Stripes):
    mean = "high"


class Negative(Stripes):
    mean, std = (1.0,), (-1.0,)


class Nameless(Stripes):
    classes = numpy.array(["even"])


class Short(Stripes):
    std = (1.0, 1.0)


@pytest.mark.parametrize("module, message", [
    (Doubles, r"must give finite float32 pictures of the shape \[8, 1, 12, 12\], but gave torch.float64"),
    (Holed, r"but gave torch.float32 of \[8, 1, 12, 12\], not finite in the rows \[3\]"),
    (Endless, r"Endless.train_dataloader\(\) must know how many batches it has"),
    (Worded, r"Worded.mean must have 1 numbers, one for each channel, but got 'high'"),
    (Short, r"Short.std must have 1 numbers, one for each channel, but got \(1.0, 1.0\)"),
])  # fmt: skip
def test_batches_and_numbers_that_no_network_could_use_are_refused(module, message):
    with pytest.raises(ValueError, match=message):
        completed(module(), 0).setup()


def test_sides_and_loaders_that_are_not_there_are_named():
    data = Stripes()
    data.image_size = (12, 14)
    with pytest.raises(
        ValueError, match=r"Stripes.image_size must be a positive integer, the side of square .* \(12, 14\)"
    ):
        completed(data, 0)
    data = lightning.LightningDataModule.from_datasets(TensorDataset(torch.rand(2, 1, 4, 4), torch.tensor([0, 1])))
    data.num_classes, data.in_channels, data.image_size = 2, 1, 4
    with pytest.raises(ValueError, match="but lacks val_dataloader, test_dataloader$"):
        completed(data, 0)


@pytest.mark.parametrize("target, message", [
    ("Negative", "std must be positive"), ("Nameless", "classes must be a name for each class"),
])  # fmt: skip
def test_what_nothing_could_load_is_refused_before_it_is_trained(configured, tmp_path, target, message):
    with pytest.raises(ConfigError, match=message):
        train(configured(target=f"{__name__}.{target}"))
    assert not list(tmp_path.rglob("*.ckpt"))
