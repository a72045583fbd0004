"""The pictures of a batch are shared out among processes."""

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, SequentialSampler

from gsa.data import DigitsDataModule, completed
from tests.data.test_own_data import Stripes


class Trainer:
    """What a data module asks of its trainer."""

    def __init__(self, rank, world, shares_out=False):
        from types import SimpleNamespace as Is

        self._accelerator_connector = Is(use_distributed_sampler=shares_out)

        self.global_rank, self.world_size, self.limit_train_batches = rank, world, 1.0
        progress = Is(current=Is(processed=0))
        self.fit_loop = Is(epoch_progress=progress, epoch_loop=Is(batch_progress=progress), restarting=False)


@pytest.mark.parametrize("world", [1, 2, 4])
def test_the_batches_of_all_processes_together_are_those_of_one(world):
    def batches(rank, world, part):
        data = DigitsDataModule(batch_size=16)
        data.setup()
        data.trainer = Trainer(rank, world)
        return [labels for _, labels in getattr(data, f"{part}_dataloader")()], data

    shares = [batches(rank, world, "train")[0] for rank in range(world)]
    whole, _ = batches(0, 1, "train")
    assert {len(share) for share in shares} == {len(whole)} == {75}
    for step, labels in enumerate(whole):
        together = torch.empty_like(labels)
        for rank, share in enumerate(shares):
            together[rank::world] = share[step]
        assert torch.equal(together, labels)
    tested = [len(labels) for rank in range(world) for labels in batches(rank, world, "test")[0]]
    assert sum(tested) == 397  # none twice, none left out


def test_a_batch_that_cannot_be_shared_out_is_refused():
    data = DigitsDataModule(batch_size=15)
    data.setup()
    data.trainer = Trainer(0, 2)
    with pytest.raises(ValueError, match="divisible by its 2 processes, but got 15"):
        data.train_dataloader()


def test_batches_are_not_shared_out_twice():
    """Lightning's own samplers would take a share of every share."""
    data = DigitsDataModule(batch_size=16)
    for world, part in ((1, "train"), (2, "train"), (2, "val")):
        data.trainer = Trainer(0, world, shares_out=True)
        if world == 1:
            data.train_dataloader()
        else:
            with pytest.raises(ValueError, match=r"Trainer\(use_distributed_sampler=False\), but got True"):
                getattr(data, f"{part}_dataloader")()


@pytest.mark.parametrize("part", ["train", "val"])
def test_processes_that_overfit_have_shares_and_the_same_batches_in_all_epochs(part):
    """Lightning exchanges samplers that are not sequential for its own, the same in all processes."""
    seen = []
    for rank in (0, 1):
        data = DigitsDataModule(batch_size=16)
        data.trainer = Trainer(rank, 2)
        data.trainer.overfit_batches = 3
        loader = getattr(data, f"{part}_dataloader")()
        assert isinstance(loader.sampler, SequentialSampler)
        first = list(loader.sampler)
        if part == "train":
            loader.sampler.set_epoch(1)
        assert list(loader.sampler) == first
        seen.append(set(first))
    together = len(data.parts[part]) // 16 * 16 if part == "train" else len(data.parts[part])
    assert not seen[0] & seen[1] and len(seen[0] | seen[1]) == together


@pytest.mark.parametrize("batch_size", [8, 12])
def test_batches_of_others_are_shared_out(batch_size):
    """64 pictures in batches of 12, the last of 4, of which three processes train on 6."""

    def batches(part, rank, world):
        data = completed(Stripes(batch_size=batch_size), seed=0)
        data.setup()
        data.trainer = Trainer(rank, world)
        return list(getattr(data, f"{part}_dataloader")())

    for world in (2, 4) if batch_size == 8 else (2, 3):
        for part in ("train", "test"):
            whole = [picture for pictures, _ in batches(part, 0, 1) for picture in pictures]
            shares = [batches(part, rank, world) for rank in range(world)]
            found = [picture for share in shares for pictures, _ in share for picture in pictures]
            assert {tuple(picture.flatten().tolist()) for picture in found} == {
                tuple(picture.flatten().tolist()) for picture in whole
            }
            if part == "test":
                assert len(found) == 64
                rows = [next(i for i, one in enumerate(whole) if torch.equal(one, picture)) for picture in found]
                assert rows == [row for rank in range(world) for row in range(rank, 64, world)]
            else:
                assert {len(share) for share in shares} == {len(batches(part, 0, 1))}
                assert len({tuple(len(labels) for _, labels in share) for share in shares}) == 1


def test_batches_of_others_that_cannot_be_shared_out_are_refused():
    data = completed(Stripes(batch_size=8), seed=0)
    data.setup()
    data.trainer = Trainer(0, 3)
    with pytest.raises(ValueError, match="divisible by its 3 processes, but got 8"):
        data.train_dataloader()
    sampler = DistributedSampler(range(64), num_replicas=2, rank=0)
    data.inner.train_dataloader = lambda: DataLoader(range(64), 8, sampler=sampler)
    data.trainer = Trainer(0, 2)
    with pytest.raises(ValueError, match="all pictures to every process, .* has a DistributedSampler: leave it out"):
        data.train_dataloader()
