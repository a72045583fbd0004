"""What a step draws."""

from itertools import product
from types import SimpleNamespace

import torch

from gsa.training import SeededSteps


def test_every_step_draws_its_own():
    """Another seed, epoch, batch or process is another draw."""
    drawn = set()
    for seed, epoch, index, rank in product((0, 1), repeat=4):
        strategy = SimpleNamespace(root_device=torch.device("cpu"))
        trainer = SimpleNamespace(current_epoch=epoch, global_rank=rank, strategy=strategy)
        SeededSteps(seed).on_train_batch_start(trainer, None, None, index)
        drawn.add(torch.rand(()).item())
    assert len(drawn) == 16
