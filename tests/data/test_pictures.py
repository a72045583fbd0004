"""Order and augmentation are functions of (seed, epoch, index), and bad pictures are named."""

import math
from types import SimpleNamespace

import numpy
import pytest
import torch
from torch.utils.data import Subset, TensorDataset

from gsa._limits import AUGMENTATIONS
from gsa.data import DigitsDataModule, ImageFolderDataModule
from gsa.data._augmentation import augment
from gsa.data._order import EpochOrder
from gsa.data._pictures import NormalisedPictures, PictureDataModule, pictures_in_memory
from gsa.data._turn import turned
from tests.data.folders import write_pictures


def test_every_epoch_has_its_own_order_of_everything():
    order = EpochOrder(100, seed=0)
    epochs = []
    for epoch in (0, 1):
        order.set_epoch(epoch)
        keys = list(order)
        assert {e for e, _ in keys} == {epoch} and sorted(i for _, i in keys) == list(range(100))
        epochs.append([i for _, i in keys])
    assert epochs[0] != epochs[1]
    order.set_epoch(0)
    assert [i for _, i in order] == epochs[0]
    assert [i for _, i in EpochOrder(100, seed=1)] != epochs[0]


@pytest.mark.parametrize("value, named", [(8.3, r"\[.*, 8.3"), (-2.0, r"\[-2.0"), (math.nan, r"\[nan, nan\]")])
def test_pictures_that_are_read_one_by_one_are_numbers_in_the_unit(value, named):
    """As those in memory are: augmentation would cut them, and the test would not. Planted: bytes."""

    class Lazy(list):
        pass

    pictures = torch.rand(5, 1, 4, 4)
    pictures[3, 0, 2, 2] = value
    lazy = Lazy((picture, 0) for picture in pictures)
    shown = NormalisedPictures(Subset(lazy, [2, 3]), [0], [1])
    assert shown[0][0].shape == (1, 4, 4)
    with pytest.raises(ValueError, match=rf"Lazy, row 3: pixels must be numbers in \[0, 1\], but got {named}"):
        shown[1]
    rounded = NormalisedPictures(Lazy([(torch.full((1, 4, 4), 1.0000002), 0)]), [0], [1])
    assert rounded[0][0].max() == 1
    as_bytes = NormalisedPictures(Lazy([(torch.full((1, 4, 4), 200, dtype=torch.uint8), 0)]), [0], [1])
    assert as_bytes[0][0].max() < 1


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_an_augmented_picture_is_a_function_of_seed_epoch_and_index(name):
    data = pictures_in_memory(torch.rand(3, 1, 16, 16), torch.zeros(3, dtype=torch.long), 1, "here")

    def picture(seed, epoch, index):
        return NormalisedPictures(data, [0], [1], [name], seed)[epoch, index][0]

    assert torch.equal(picture(0, 5, 1), picture(0, 5, 1))
    different = [picture(0, epoch, 1) for epoch in range(20)] + [picture(seed, 0, 1) for seed in range(20)]
    assert len({p.sum(-1).numpy().tobytes() for p in different}) > 1
    assert picture(0, 0, 1).shape == (1, 16, 16)


@pytest.mark.parametrize("size", [(7, 7), (6, 9)])
def test_augmentations_keep_the_size(size):
    pictures = torch.rand(2, 3, *size)
    randoms = [numpy.random.default_rng(seed) for seed in range(2)]
    assert augment(pictures, list(AUGMENTATIONS), randoms).shape == pictures.shape


def test_workers_change_nothing():
    def epoch(workers):
        module = DigitsDataModule(batch_size=200, augmentation=["turns", "crops"], num_workers=workers)
        module.setup()
        return [x for x, _ in module.train_dataloader()]

    assert all(torch.equal(a, b) for a, b in zip(epoch(0), epoch(2), strict=True))


@pytest.mark.parametrize("asks_again", [False, True])
def test_without_a_trainer_every_epoch_is_another(asks_again):
    """As Lightning, which tells the epochs, would have them."""
    module = DigitsDataModule(batch_size=200, augmentation=["turns"])
    module.setup()
    loader = module.train_dataloader()
    epochs = [torch.cat([x for x, _ in (module.train_dataloader() if asks_again else loader)]) for _ in range(3)]
    for number, epoch in enumerate(epochs):
        order = EpochOrder(len(module.parts["train"]), 0, number, batch_size=200)
        torch.testing.assert_close(epoch, torch.stack([module.parts["train"][key][0] for key in order]))
    assert not torch.equal(epochs[0], epochs[1])
    loader.sampler.set_epoch(1)  # as Lightning does
    assert all(torch.equal(torch.cat([x for x, _ in loader]), epochs[1]) for _ in range(2))


def test_turned_counts_counter_clockwise():
    pictures = torch.rand(4, 2, 6, 6)
    quarter = turned(pictures, [k * math.pi / 2 for k in range(4)])
    for k in range(4):
        torch.testing.assert_close(quarter[k], torch.rot90(pictures[k], k, (-2, -1)))


def test_bad_pixels_and_labels_are_named_by_row():
    pictures, labels = torch.rand(5, 1, 4, 4), torch.arange(5)
    pictures_in_memory(pictures, labels, 5, "here")
    with pytest.raises(ValueError, match="here, row 4: labels must be 0 … 3, but got 4"):
        pictures_in_memory(pictures, labels, 4, "here")
    for value in (math.nan, math.inf, -1.0, 2.0):
        wrong = pictures.clone()
        wrong[2, 0, 1, 1] = value
        with pytest.raises(ValueError, match="here, row 2: pixels must be numbers in"):
            pictures_in_memory(wrong, labels, 5, "here")
    for wrong in (labels.float(), labels.int(), labels[:, None]):
        with pytest.raises(ValueError, match=r"here: labels must be int64 \[N\], but got torch"):
            pictures_in_memory(pictures, wrong, 5, "here")
    with pytest.raises(ValueError, match="5 pictures, but 4 labels"):
        pictures_in_memory(pictures, labels[:4], 5, "here")


@pytest.mark.parametrize(
    "argument, message",
    [
        ({"batch_size": -3}, "batch_size must be at least 1"),
        ({"num_workers": -1}, "num_workers must not be negative"),
        ({"augmentation": ["turn"]}, "augmentation must be a list out of"),
        ({"augmentation": "turns"}, "augmentation must be a list out of"),
        ({"size": 4}, "size must be at least"),
    ],
)
def test_bad_arguments_are_refused(argument, message):
    with pytest.raises(ValueError, match=message):
        DigitsDataModule(**argument)


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(ValueError, match="batch_size must be at most the 1200 training pictures"):
        DigitsDataModule(batch_size=2000).setup()


def test_an_epoch_of_several_rounds_is_as_many_epochs_of_one_and_goes_on_in_its_midst():
    def order(rounds, epoch=0, seen=0):
        return EpochOrder(10, 0, epoch, seen, batch_size=3, batches=3 * rounds)

    single = order(1)
    singles = []
    for epoch in range(6):
        single.set_epoch(epoch)
        singles.append(list(single))
    assert list(order(3, epoch=1)) == [key for epoch in singles[3:] for key in epoch] and len(order(3)) == 27
    for seen in (0, 3, 9, 15, 24):
        assert list(order(3, 1, seen)) == [key for epoch in singles[3:] for key in epoch][seen:]


def test_an_epoch_may_end_within_a_round():
    def order(epoch, seen=0, **options):
        return list(EpochOrder(10, 0, epoch, seen, batch_size=3, batches=4, **options))

    for epoch in range(2):
        first, second = (list(EpochOrder(10, 0, 2 * epoch + one, batch_size=3)) for one in range(2))
        assert order(epoch) == first + second[:3] and len(EpochOrder(10, 0, epoch, batch_size=3, batches=4)) == 12
        for seen in (3, 9):
            assert order(epoch, seen) == order(epoch)[seen:]
    halves = [list(EpochOrder(10, 0, 0, batch_size=2, rank=rank, world=2, batches=7)) for rank in range(2)]
    assert [len(half) for half in halves] == [7, 7]
    assert [key for pair in zip(*halves, strict=True) for key in pair] == list(EpochOrder(10, 0, 0, 0, 2, batches=7))


def test_few_pictures_make_an_epoch_of_the_least_batches(tmp_path):
    write_pictures(tmp_path, count=10)
    module = ImageFolderDataModule(tmp_path, 8, batch_size=4, least_batches=10, augmentation=["turns"])
    module.setup()  # 18 training pictures, 4 batches a round
    assert module.batches_per_epoch() == len(module.train_dataloader()) == 12
    (first, _), (second, _) = (module.parts["train"][number, 5] for number in (0, 1))
    assert not first.equal(second)


WHOLE = TensorDataset(torch.rand(10, 1, 2, 2), torch.zeros(10))
LAST = TensorDataset(torch.rand(10, 2, 2, 1).movedim(-1, 1), torch.zeros(10))


def rows(chosen, whole=WHOLE):
    """A part out of one data set: by slice, a view of its tensors; by list, a subset."""
    return TensorDataset(*whole[chosen]) if isinstance(chosen, slice) else Subset(whole, chosen)


THIRDS = slice(0, 4), slice(4, 6), slice(6, 10)


@pytest.mark.parametrize(
    "parts, sizes, message",
    [
        (map(rows, THIRDS), (4, 2, 4), None),
        ((rows(third, whole=LAST) for third in THIRDS), None, None),
        (map(rows, ([1, 2], [0], [9])), None, None),
        (map(rows, THIRDS), (5, 2, 4), "must have .* pictures, but has"),
        (map(rows, (slice(0, 5), slice(4, 6), slice(6, 10))), None, "1 pictures that are in train and in val"),
        (map(rows, (slice(0, 8), slice(8, 10), slice(20, 30))), None, "pictures in every part, but has .*'test': 0"),
        (map(rows, ([1, 2], [-1], [9])), None, "1 pictures that are in val and in test"),
        ((Subset(Subset(WHOLE, [5, 6]), [0]), rows([5]), rows([1])), None, "1 pictures that are in train and in val"),
        ((WHOLE, WHOLE, LAST), None, "10 pictures that are in train and in val"),
        ((WHOLE, LAST), None, "the parts train, val and test, but has"),
    ],
)
def test_parts_never_overlap(parts, sizes, message):
    class Module(PictureDataModule):
        name, mean, std = "shapes", [0.0], [1.0]

        def load(self):
            return dict(zip(names, parts, strict=False))

    names = ("train", "val", "test")
    Module.sizes = dict(zip(names, sizes, strict=True)) if sizes else None
    module = Module(1, 0, (), 0, None)
    if message is None:
        return module.setup()
    with pytest.raises(ValueError, match=f"shapes .*{message}"):
        module.setup()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_batches_for_a_gpu_lie_in_pinned_memory(device):
    data = DigitsDataModule()
    data.setup()
    assert not data.val_dataloader().pin_memory  # nobody has said what for
    strategy = SimpleNamespace(root_device=torch.device(device))
    data.trainer = SimpleNamespace(strategy=strategy, global_rank=0, world_size=1)
    assert data.val_dataloader().pin_memory == (device == "cuda")


def test_only_training_pictures_are_changed():
    module = DigitsDataModule(augmentation=["turns"])
    module.setup()
    for part, data in module.parts.items():
        assert torch.equal(data[0][0], data.normalise(data.first(1)[0])[0]) == (part != "train")


def test_another_seed_is_another_order_and_changes_the_same_pictures_otherwise():
    modules = [DigitsDataModule(batch_size=200, augmentation=["turns"], seed=seed) for seed in (0, 1)]
    one, other = ([*module.train_dataloader().sampler] for module in modules)
    assert one != other
    assert not torch.equal(*(module.parts["train"][0, 3][0] for module in modules))


def test_the_epoch_after_one_that_went_on_is_whole():
    order, fresh = EpochOrder(10, 0, epoch=1, seen=6, batch_size=3), EpochOrder(10, 0, epoch=2, batch_size=3)
    assert len(list(order)) == 3
    order.set_epoch(2)
    assert list(order) == list(fresh)
