"""Accuracy in which every class counts alike."""

import torch
from torch import distributed, multiprocessing

from gsa.training._balanced import BalancedAccuracy


def test_it_is_the_mean_of_what_is_right_of_each_class():
    metric = BalancedAccuracy(4)
    metric.update(torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 0, 0]))
    metric.update(torch.tensor([1, 2, 3]), torch.tensor([1, 1, 3]))  # none is of class 2, which was answered
    assert metric.compute().item() == torch.tensor([3 / 4, 1 / 2, 1]).mean().item()


def test_labels_of_bytes_count_as_others_do():
    metric = BalancedAccuracy(3)
    metric.update(torch.tensor([0, 2]), torch.tensor([0, 1], dtype=torch.uint8))
    assert metric.compute().item() == 0.5


def test_who_always_answers_alike_is_no_better_than_chance():
    """Planted: plain accuracy would be 0.9."""
    labels = (torch.arange(100) >= 90).long()
    metric = BalancedAccuracy(2)
    metric.update(torch.zeros_like(labels), labels)
    assert metric.compute().item() == 0.5


def counted(rank, folder):
    """One of two processes, whose pictures are of different classes."""
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    metric = BalancedAccuracy(3)
    answers, labels = (torch.tensor([0, 0, 1, 2]), torch.tensor([0, 0, 0, 1])) if rank else (torch.tensor([1]),) * 2
    metric.update(answers, labels)
    torch.save(metric.compute(), folder / f"{rank}.pt")
    distributed.destroy_process_group()


def test_several_processes_count_together(tmp_path):
    """Planted: the mean over the processes."""
    multiprocessing.start_processes(counted, (tmp_path,), nprocs=2, start_method="fork")  # spawned, each imports all
    found = [torch.load(tmp_path / f"{rank}.pt").item() for rank in range(2)]
    together = torch.tensor([2 / 3, 1 / 2]).mean().item()
    assert found == [together] * 2 and together != torch.tensor([1.0, torch.tensor([2 / 3, 0]).mean()]).mean().item()
