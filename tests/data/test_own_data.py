"""Anybody's LightningDataModule is trained on, resumed and tested like ours."""

import multiprocessing
import os
import random
import signal
import warnings

import lightning
import numpy
import pytest
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, TensorDataset

import gsa
from gsa.data import DigitsDataModule, ImageData, completed
from gsa.runner import train
from gsa.saved import read, read_checkpoint
from gsa.training import Classifier, Stopped


class Stripes(lightning.LightningDataModule):
    """Noise, even or striped; knows nothing of gsa."""

    num_classes, in_channels, image_size = 2, 1, 12
    classes = ("even", "striped")

    def __init__(self, count=64, batch_size=8):
        super().__init__()
        self.count, self.batch_size = count, batch_size

    def _loader(self, seed, **options):
        own = torch.Generator().manual_seed(seed)
        labels = torch.randint(2, (self.count,), generator=own)
        pictures = torch.rand(self.count, 1, 12, 12, generator=own)
        pictures[labels == 1, :, :, ::2] *= 0.2
        return DataLoader(TensorDataset(pictures, labels), self.batch_size, **options)

    def train_dataloader(self):
        return self._loader(0, shuffle=True)

    def val_dataloader(self):
        return self._loader(1)

    def test_dataloader(self):
        return self._loader(2)


class Sampled(Stripes):
    """With loaders that have no size of batches."""

    def _loader(self, seed, **options):
        dataset = super()._loader(seed).dataset
        return DataLoader(dataset, batch_sampler=BatchSampler(range(len(dataset)), self.batch_size, False))


class WithGenerator(Stripes):
    """With an order that is drawn from a generator of its own."""

    def train_dataloader(self):
        return self._loader(0, shuffle=True, generator=torch.Generator())


class Noised(TensorDataset):
    """Draws for every picture, as transforms do."""

    def __getitem__(self, index):
        picture, label = super().__getitem__(index)
        return picture + 0.3 * torch.rand(()), label


class Augmented(Stripes):
    def train_dataloader(self):
        dataset = self._loader(0).dataset
        return DataLoader(Noised(*dataset.tensors), self.batch_size, shuffle=True)


class ByOthers(Noised):
    """Whose transforms draw from numpy and from Python."""

    def __getitem__(self, index):
        picture, label = TensorDataset.__getitem__(self, index)
        return picture + 0.3 * numpy.random.rand() + 0.3 * random.random(), label


class DrawnByOthers(Stripes):
    workers = 0

    def train_dataloader(self):
        dataset = ByOthers(*self._loader(0).dataset.tensors)
        return DataLoader(dataset, self.batch_size, shuffle=True, num_workers=self.workers,
                          persistent_workers=self.workers > 0)  # fmt: skip


class Kept(DrawnByOthers):
    """By workers that stay from epoch to epoch."""

    workers = 1


def outcome(config):
    _, objects = train(config)
    last = read_checkpoint(f"{config.output_dir}/checkpoints/last.ckpt")
    return objects, last["state_dict"]


def test_it_is_trained_on_and_told_of(configured):
    objects, _ = outcome(configured("report=true", "ema=null", "trainer.max_epochs=8"))
    report = objects["report"]
    assert report["split"] == {"train": 64, "val": 64, "test": 64} and report["data"]["name"] == "Stripes"
    assert report["class_accuracy"].keys() == {"even", "striped"} and report["test_accuracy"] > 0.9
    assert read(objects["folder"]).pictures.classes == ("even", "striped")
    assert isinstance(Stripes(), ImageData) and not isinstance(TensorDataset(torch.zeros(1)), ImageData)


def test_loaders_need_no_size_of_batches(configured):
    limits = "trainer.max_epochs=1", "trainer.limit_test_batches=3", "ema=null"
    _, objects = train(configured(*limits, target="tests.data.test_own_data.Sampled"))
    assert objects["report"]["used"] == {"train": 64, "val": 64, "test": 48}


OWN = ("Stripes", "WithGenerator", "Augmented", "DrawnByOthers", "Kept")


@pytest.mark.parametrize("target", [f"{__name__}.{kind}" for kind in OWN])
def test_a_run_stopped_in_mid_epoch_ends_as_if_it_had_not_been(configured, target):
    whole, weights = outcome(configured(target=target, folder="whole"))
    step = Classifier.training_step

    def stop(classifier, batch, index):
        if classifier.current_epoch == 1 and index == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(classifier, batch, index)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Classifier, "training_step", stop)
        train(configured(target=target, folder="parts"))
    torch.manual_seed(99)
    resumed, found = outcome(configured("ckpt_path=auto", target=target, folder="parts"))
    assert [name for name in weights if not torch.equal(found[name], weights[name])] == []
    assert resumed["report"]["history"][1]["train/loss"] == whole["report"]["history"][1]["train/loss"]


def test_ours_is_left_as_it_is():
    ours = DigitsDataModule()
    assert completed(ours, 0) is ours


class Normalised(Stripes):
    """(x − ½) / ¼, and says so once it is set up."""

    def setup(self, stage):
        self.mean, self.std = torch.tensor([0.5]), 0.25 * torch.ones(1)

    def _loader(self, seed, **options):
        pictures, labels = super()._loader(seed).dataset.tensors
        return DataLoader(TensorDataset((pictures - 0.5) / 0.25, labels), self.batch_size, **options)


class Silent(Normalised):
    def setup(self, stage):
        pass


def test_what_is_known_after_setup_normalises_the_pictures_of_others(configured):
    _, objects = train(configured("trainer.max_epochs=1", target=f"{__name__}.Normalised"))
    saved = read(objects["folder"])
    assert (saved.pictures.mean, saved.pictures.std) == ((0.5,), (0.25,))
    raw = torch.rand(2, 1, 12, 12)
    torch.testing.assert_close(saved.pictures.normalise(raw), (raw - 0.5) / 0.25)


def test_pictures_that_others_would_not_be_made_like_are_told_of():
    with pytest.warns(
        UserWarning, match=r"mean \[0.0\] and std \[1.0\] here, but x is from -2 to 1.99: .* Silent.mean and std"
    ):
        completed(Silent(), 0).setup()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        completed(Normalised(), 0).setup()


@pytest.mark.parametrize("said, known", [
    ({}, {"white": None, "pages": False, "whole": False}),
    ({"white": 10000, "channels": "pages", "framing": "whole"}, {"white": 10000, "pages": True, "whole": True}),
    ({"white": [10000], "channels": "pages"}, {"white": (10000,), "pages": True, "whole": False}),
])  # fmt: skip
def test_how_files_become_its_pictures_may_be_said(said, known):
    data = Stripes()
    data.reading = said
    data.channels = 13  # which is of the module itself
    made = completed(data, 0)
    made.setup()
    pictures = gsa.models.PictureFormat.of(made.picture_format())
    assert {name: getattr(pictures, name) for name in known} == known


@pytest.mark.parametrize("reading, message", [
    ({"framing": "all"}, "Stripes.reading: framing must be .*centre.*, but got 'all'"),
    ({"channels": 13}, "Stripes.reading: channels must be .*pages.*, but got 13"),
    ({"white": [1, 2]}, "white must be one number where channels are not pages"),
    ({"white": 0.5}, "Stripes.reading: white must be at least 1, or a list of such numbers, .* but got 0.5"),
    ({"black": 0}, "Stripes.reading must be a dictionary of white, channels, framing, but got {'black': 0}"),
    ("pages", "Stripes.reading must be a dictionary of white, channels, framing, but got 'pages'"),
])  # fmt: skip
def test_another_way_than_there_is_is_refused(reading, message):
    data = Stripes()
    data.reading = reading
    with pytest.raises(ValueError, match=message):
        completed(data, 0)


def test_a_number_alone_serves_one_channel_and_labels_may_be_numbers():
    data = Stripes()
    data.mean, data.std, data.classes = numpy.float32(0.25), 0.5, numpy.array([3, 4])
    made = completed(data, 0)
    made.setup()
    assert made.picture_format()["mean"] == [0.25] and made.classes == ["3", "4"]


class Persistent(Stripes):
    """Gives the same loader every time."""

    def __init__(self):
        super().__init__()
        self.made = {}

    def _loader(self, seed, **options):
        if seed not in self.made:
            self.made[seed] = super()._loader(seed, num_workers=1, persistent_workers=True, **options)
        return self.made[seed]


@pytest.mark.filterwarnings("ignore")  # Lightning's advice
def test_workers_that_would_persist_end_with_their_loader():
    made = completed(Persistent(), seed=0)
    made.setup()
    assert not multiprocessing.active_children()
    assert len(made.parts["val"].first(1)[0]) == 1 and made.class_counts().sum() == 64
    assert not multiprocessing.active_children()
    for _ in range(2):
        trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False)
        trainer.fit(Classifier(nn.Sequential(nn.Flatten(), nn.Linear(144, 2)), 2, torch.optim.AdamW), made)
        assert not multiprocessing.active_children()


def test_without_a_trainer_every_epoch_is_another():
    made, again = (completed(Stripes(), seed=0) for _ in range(2))
    first, second = (torch.cat([x for x, _ in made.train_dataloader()]) for _ in range(2))
    loader = again.train_dataloader()
    assert not torch.equal(first, second)
    for epoch in (first, second):
        assert torch.equal(torch.cat([x for x, _ in loader]), epoch)
