"""Accuracy in which every class counts alike."""

import torch

from gsa.training._balanced import BalancedAccuracy


def test_it_is_the_mean_of_what_is_right_of_each_class():
    metric = BalancedAccuracy(4)
    metric.update(torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 0, 0]))
    metric.update(torch.tensor([1, 2, 3]), torch.tensor([1, 1, 3]))  # none is of class 2, which was answered
    assert metric.compute().item() == torch.tensor([3 / 4, 1 / 2, 1]).mean().item()


def test_who_always_answers_alike_is_no_better_than_chance():
    """Planted: plain accuracy would be 0.9."""
    labels = (torch.arange(100) >= 90).long()
    metric = BalancedAccuracy(2)
    metric.update(torch.zeros_like(labels), labels)
    assert metric.compute().item() == 0.5
