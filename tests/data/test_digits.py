import pytest
import torch

from gsa.data import DigitsDataModule, turned_digits


def test_digits_are_a_function_of_the_seed():
    images, labels = turned_digits(3)
    again, labels_again = turned_digits(3)
    assert torch.equal(images, again) and torch.equal(labels, labels_again)
    assert not torch.equal(images, turned_digits(4)[0])
    assert images.shape == (1797, 1, 16, 16) and images.dtype == torch.float32
    assert labels.bincount(minlength=10).min() > 170


def test_every_angle_occurs():
    """The mean picture of a class is nearly the same in all directions; that of unturned digits is not."""
    images, labels = turned_digits()
    mean = images[labels == 1].mean(0)
    assert (mean - torch.rot90(mean, 1, (-2, -1))).norm() / (mean - mean.mean()).norm() < 0.3


def test_the_parts_are_disjoint_and_cover_everything():
    module = DigitsDataModule()
    module.setup()
    parts = [module.parts[name].tensors[0] for name in ("train", "val", "test")]
    assert [len(p) for p in parts] == [1200, 200, 397]
    assert torch.equal(torch.cat(parts), turned_digits()[0])


def test_training_order_changes_from_epoch_to_epoch_and_repeats_with_the_seed():
    def labels(seed):
        module = DigitsDataModule(seed=seed)
        module.setup()
        loader = module.train_dataloader()
        return [torch.cat([y for _, y in loader]) for _ in range(2)]

    first, second = labels(0)
    assert not torch.equal(first, second)
    assert all(torch.equal(a, b) for a, b in zip(labels(0), (first, second), strict=True))


@pytest.mark.parametrize("size", [12, 16, 20])
def test_digits_stay_in_the_frame(size):
    images, _ = turned_digits(size=size)
    background = images.flatten().mode().values
    border = torch.cat([images[..., 0, :], images[..., -1, :], images[..., :, 0], images[..., :, -1]], -1)
    assert ((border - background).abs() < 0.5).float().mean() > 0.97
