"""What is minimised: smoothed, mixed and weighed cross-entropy against its formula."""

import pytest
import torch
import torch.nn.functional as F

from gsa.training import TrainingLoss

LOGITS, LABELS = torch.randn(7, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 1, 1, 2, 1, 0])


def weighed(**options):
    loss = TrainingLoss(3, balanced=True, **options)
    loss.count(LABELS.bincount())
    return loss


def test_balanced_classes_weigh_as_much_as_each_other():
    found = weighed()(LOGITS, LABELS)
    of_class = [F.cross_entropy(LOGITS[c == LABELS], LABELS[c == LABELS]) for c in range(3)]
    torch.testing.assert_close(found, sum(of_class) / 3)
    assert (found - F.cross_entropy(LOGITS, LABELS)).abs() > 1e-3  # planted: plain cross-entropy is another


@pytest.mark.parametrize("weights", [[1, 2.0, 0.5], torch.tensor([1, 2.0, 0.5])])
def test_classes_weigh_what_they_are_given(weights):
    found = TrainingLoss(3, 0.1, weights=weights)(LOGITS, LABELS)
    expected = F.cross_entropy(LOGITS, LABELS, torch.tensor([1, 2.0, 0.5]), label_smoothing=0.1)
    torch.testing.assert_close(found, expected)


def test_labels_and_shares_that_are_all_of_one_class_cost_the_same():
    for loss in (TrainingLoss(3, 0.1), weighed(label_smoothing=0.1), weighed()):
        torch.testing.assert_close(loss(LOGITS, F.one_hot(LABELS, 3).float()), loss(LOGITS, LABELS))


def test_pictures_and_targets_are_mixed_alike():
    images = torch.rand(7, 1, 4, 4)
    torch.manual_seed(0)
    mixed, targets = TrainingLoss(3, mixup=0.4).mix(images, LABELS)
    share = ((mixed[0] - images[-1]) / (images[0] - images[-1])).mean()
    assert 0 < share < 1
    torch.testing.assert_close(mixed, share * images + (1 - share) * images.roll(1, 0))
    shares = F.one_hot(LABELS, 3).float()
    torch.testing.assert_close(targets, share * shares + (1 - share) * shares.roll(1, 0))
    assert TrainingLoss(3).mix(images, LABELS) == (images, LABELS)


@pytest.mark.parametrize("options, message", [
    ({"label_smoothing": 1.0}, r"a share in \[0, 1\), but got 1.0"), ({"mixup": -0.1}, "Beta distribution, or 0, but"),
    ({"weights": [1, 2]}, r"weights must be 3 positive numbers, .* but got \[1, 2\]"),
    ({"weights": [1, 2, 1e-60]}, "weights must be 3 positive numbers"), ({"weights": 5}, "but got 5"),
    ({"weights": [1, 2, 0]}, "weights must be 3 positive numbers"),
    ({"weights": [1, 2, 3], "balanced": True}, "balanced classes weigh by their numbers, and take no weights"),
])  # fmt: skip
def test_numbers_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TrainingLoss(3, **options)


def test_pictures_in_half_precision_are_mixed():
    images, shares = TrainingLoss(3, mixup=0.2).mix(torch.rand(7, 1, 4, 4, dtype=torch.bfloat16), LABELS)
    assert images.dtype == torch.bfloat16 and shares.shape == (7, 3) and shares.isfinite().all()


def test_a_class_without_pictures_weighs_no_more_than_can_be_counted():
    loss = TrainingLoss(3, balanced=True)
    loss.count(torch.tensor([4, 2, 0]))
    for targets in (torch.tensor([0, 1]), torch.tensor([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])):
        assert loss(torch.randn(2, 3), targets).isfinite()


def test_balanced_classes_that_nobody_counted_are_refused():
    with pytest.raises(ValueError, match=r"call count\(…\) first"):
        TrainingLoss(3, balanced=True)(LOGITS, LABELS)
    with pytest.raises(ValueError, match="pass balanced=True"):
        TrainingLoss(3).count(LABELS.bincount())
    with pytest.raises(ValueError, match="mixup"):
        TrainingLoss(3, mixup=float("nan"))


def test_two_processes_with_one_batch_each_have_the_loss_of_one(monkeypatch):
    loss, logits, labels = TrainingLoss(3, weights=[1, 2, 5]), torch.randn(7, 3), torch.arange(7) % 3
    alone = loss(logits, labels)
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 2)
    monkeypatch.setattr("torch.distributed.all_reduce", lambda total: total.mul_(2))
    torch.testing.assert_close(loss(logits, labels), alone)
