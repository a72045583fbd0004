"""So many of the training pictures: of every class its share, nested, in epochs of as many batches."""

from collections import Counter
from itertools import pairwise

import pytest
import torch
from torch.utils.data import Subset, TensorDataset

from gsa.data import DigitsDataModule, ImageFolderDataModule
from gsa.data._division import few_of_all, few_of_groups
from gsa.data._pictures import labels_of
from gsa.runner._older import as_meant
from tests.data.folders import write_pictures

LABELS = [0] * 60 + [1] * 30 + [2] * 10


def test_every_class_has_its_share_and_one_at_least():
    for count, expected in ((3, (1, 1, 1)), (10, (6, 3, 1)), (50, (30, 15, 5)), (100, (60, 30, 10))):
        rows = few_of_all(LABELS, count, 0)
        found = Counter(LABELS[row] for row in rows)
        assert rows == sorted(set(rows)) and tuple(found[label] for label in range(3)) == expected


def test_fewer_are_among_more_of_the_same_seed_and_another_draws_others():
    nested = [set(few_of_all(LABELS, count, 0)) for count in range(3, 101)]
    assert all(few < more for few, more in pairwise(nested))
    assert set(few_of_all(LABELS, 50, 1)) != nested[47]


def test_few_pictures_are_of_few_groups_of_every_class():
    """Planted: the same of all groups."""
    groups = [f"{label}{row // 2}" for row, label in enumerate(LABELS)]  # of two pictures each
    nested = [set(few_of_groups(LABELS, groups, count, 0)) for count in range(5, 101)]
    assert all(few < more for few, more in pairwise(nested)) and len(nested[-1]) == 100
    for count, rows in enumerate(nested, 5):
        assert {LABELS[row] for row in rows} == {0, 1, 2} and len({groups[row] for row in rows}) == -(-count // 2)
    assert len({groups[row] for row in few_of_all(LABELS, 20, 0)}) > 10
    assert set(few_of_groups(LABELS, groups, 50, 1)) != nested[45]
    with pytest.raises(ValueError, match="must be at least 5, for groups of every class to be among them, but got 4"):
        few_of_groups(LABELS, groups, 4, 0)


def test_groups_of_any_sizes_keep_the_classes_in_proportion():
    """Planted: a class of few large groups, and one of many small ones; and groups of both."""
    labels, groups = [0] * 300 + [1] * 30, [f"a{n // 60}" for n in range(300)] + [f"b{n // 2}" for n in range(30)]
    for count in (70, 130, 200, 330):
        found = Counter(labels[row] for row in few_of_groups(labels, groups, count, 0))
        assert abs(found[1] - count / 11) <= 6 and found.total() == count
    mixed = few_of_groups([0, 1] * 50, [str(n // 4) for n in range(100)], 40, 0)
    assert Counter(row % 2 for row in mixed) == {0: 20, 1: 20}


def test_pictures_in_folders_of_groups(tmp_path):
    for name in ("cat", "dog"):
        write_pictures(tmp_path, parts=(name,), classes=[f"p{n}" for n in range(10)], count=4)
    module = ImageFolderDataModule(tmp_path, 8, batch_size=4, groups="folder", train_pictures=12)
    module.setup()
    assert len(module.parts["train"].files) == 12
    assert len({module.group_of[path] for path, _ in module.parts["train"].files}) == 2  # of eight of both classes each


def digits(**options):
    module = DigitsDataModule(batch_size=20, **options)
    module.setup()
    return module


def test_the_other_parts_and_the_length_of_epochs_stay():
    every, few = digits(), digits(train_pictures=100)
    assert few.describe() | {"train": 1200} == every.describe() and few.describe()["train"] == 100
    assert few.batches_per_epoch() == len(few.train_dataloader()) == every.batches_per_epoch() == 60
    assert few.pictures_of(60) == every.pictures_of(60) == 1200  # of which 100 are different
    assert torch.equal(few.parts["test"].first(397)[0], every.parts["test"].first(397)[0])
    assert (few.mean, few.std) == (every.mean, every.std) and few.class_counts().sum() == 100
    known = {picture.numpy().tobytes() for picture in every.parts["train"].first(1200)[0]}
    drawn = {picture.numpy().tobytes() for picture in few.parts["train"].first(1200)[0]}
    assert len(drawn) == 100 and drawn < known
    epoch = torch.cat([pictures for pictures, _ in few.train_dataloader()])
    assert len(epoch) == 1200 and len({picture.numpy().tobytes() for picture in epoch}) == 100
    assert digits(train_pictures=100, seed=5).parts["train"].first(1)[0].equal(few.parts["train"].first(1)[0])


@pytest.mark.parametrize("count", [77, 400, 700, 1100, 1199])
def test_an_epoch_keeps_its_batches_whatever_the_number(count):
    few = digits(train_pictures=count)
    assert few.batches_per_epoch() == len(list(few.train_dataloader())) == 60


def test_so_does_one_that_goes_through_all_of_them_several_times(tmp_path):
    write_pictures(tmp_path, count=20)
    of_each = []
    for count in (None, 8, 20, 30):
        options = {"batch_size": 4, "least_batches": 50, "train_pictures": count}
        module = ImageFolderDataModule(tmp_path, 8, **options)
        module.setup()
        of_each.append(module.batches_per_epoch())
    assert len(set(of_each)) == 1 and of_each[0] >= 50


def test_all_of_them_are_what_there_was_before():
    every, all_ = digits(), digits(train_pictures=1200)
    for (x, labels), (other, others) in zip(every.train_dataloader(), all_.train_dataloader(), strict=True):
        assert x.equal(other) and labels.equal(others)


def test_pictures_in_folders(tmp_path):
    write_pictures(tmp_path, count=20)
    every, few = (ImageFolderDataModule(tmp_path, 8, batch_size=4, train_pictures=n) for n in (None, 8))
    every.setup(), few.setup()
    assert isinstance(few.parts["train"].dataset, Subset) and len(few.parts["train"].files) == 8
    assert set(few.parts["train"].files) < set(every.parts["train"].files)
    assert few.parts["val"].files == every.parts["val"].files and few.digests["train"] != every.digests["train"]
    assert set(labels_of(few.parts["train"].dataset)) == set(range(few.num_classes))
    assert few.batches_per_epoch() == every.batches_per_epoch()


@pytest.mark.parametrize("count, message", [
    (0, "train_pictures must be at least 1, or None, but got 0"),
    (9, "at least the 10 classes and at most the 1200 training pictures, but got 9"),
    (1201, "at least the 10 classes and at most the 1200 training pictures, but got 1201"),
    (12, "batch_size must be at most the 12 training pictures, but got 20"),
])  # fmt: skip
def test_too_few_and_too_many_are_refused(count, message):
    with pytest.raises(ValueError, match=message):
        digits(train_pictures=count)


@pytest.mark.parametrize("data", ["digits", "rotmnist", "cifar10", "pcam", "imagefolder"])
def test_earlier_runs_had_all(configure, data):
    config = configure(f"data={data}", "model=pcam_gsa" if data == "imagefolder" else f"model={data}_gsa")
    assert "train_pictures" in config.data
    earlier = {"data": {key: value for key, value in config.data.items() if key != "train_pictures"}, "model": {}}
    assert as_meant(earlier)["data"]["train_pictures"] is None


def test_an_epoch_is_of_the_size_of_batches_that_the_data_have_then():
    """As when Lightning looks for a larger one."""
    module = DigitsDataModule(batch_size=16)
    module.setup()
    module.batch_size = 100
    assert module.batches_per_epoch() == len(module.train_dataloader()) == 12


def test_labels_of_some_pictures_are_theirs():
    whole = TensorDataset(torch.rand(5, 1, 2, 2), torch.tensor([0, 1, 2, 3, 4]))
    assert labels_of(Subset(whole, [4, 1])) == [4, 1]
