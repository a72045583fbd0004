"""Out of memory, at any point of a run: what was done, with how much, and what would take less."""

from types import SimpleNamespace

import pytest
import torch

import gsa
from gsa.runner import build, train
from gsa.runner._memory import explaining_memory
from tests.runner.faults import act_in


def full(*_):
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
    error.add_note("a note of the op")
    raise error


def test_the_allocator_of_the_cpu_is_understood(small):
    def fail(module):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(MemoryError, match="data.batch_size=8 trainer.accum"):
        act_in(patch, 0, 1, fail)
        train(small("data.batch_size=16"))


@pytest.mark.parametrize("options, part, message", [
    ((), "training", r"while training with data.batch_size=16 .*: data.batch_size=8 trainer.accumulate_grad_batches=2 "
     "takes the same steps with half of it"),
    (("data.batch_size=9",), "training", "data.batch_size=3 trainer.accumulate_grad_batches=3 takes .* with less"),
    (("data.batch_size=1",), "training", "data.batch_size=1 .*: it is one picture at a time already"),
    (("trainer.accumulate_grad_batches=2",), "training", "data.batch_size=8 trainer.accumulate_grad_batches=4 takes"),
    pytest.param(("compile=reduce-overhead",), "training",
                 "compile=true data.batch_size=8 trainer.accumulate_grad_batches=2", marks=pytest.mark.slow),
    ((), "validation", "while validating with data.eval_batch_size=100 .*: data.eval_batch_size=50 takes half"),
    (("data.eval_batch_size=1",), "validation", "data.eval_batch_size=1 .*: it is one picture at a time already"),
    ((), "test", "while testing with data.eval_batch_size=100"),
])  # fmt: skip
def test_the_remedy_fits_what_was_done(small, options, part, message):
    def in_the_forward_pass(module):
        module.network.register_forward_pre_hook(full)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(MemoryError, match=message) as raised:
        if part == "test":
            patch.setattr("gsa.training.Classifier.test_step", full)
        else:
            act_in(patch, 0, 0, in_the_forward_pass, part)
        train(small(*options, "trainer.max_epochs=1"))
    assert raised.value.__notes__ == ["a note of the op"]


def test_measuring_the_symmetry_before_training_is_covered(small):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(MemoryError, match="while measuring its symmetry with"):
        patch.setattr("gsa.runner._run.symmetry_of", full)
        train(small())


def test_evaluation_batches_can_be_as_small_as_one_likes():
    data = gsa.data.DigitsDataModule(batch_size=16, eval_batch_size=3)
    data.setup()
    assert len(next(iter(data.val_dataloader()))[1]) == 3
    assert gsa.data.DigitsDataModule(batch_size=16).eval_batch_size == 100
    assert gsa.data.DigitsDataModule(batch_size=256).eval_batch_size == 256
    with pytest.raises(ValueError, match="eval_batch_size must be at least 1, or None, but got 0"):
        gsa.data.DigitsDataModule(eval_batch_size=0)


@pytest.mark.parametrize(("size", "remedy"), [
    (24, "data.batch_size=8 trainer.accumulate_grad_batches=3 takes"),  # 12 is no multiple of 8
    (8, "it is one picture at a time already in each process"),
])  # fmt: skip
def test_the_remedy_can_be_shared_out_among_the_processes(small, size, remedy):
    run = build(small(f"data.batch_size={size}", "data.eval_batch_size=8"))
    run.trainer = SimpleNamespace(world_size=8, accumulate_grad_batches=1, strategy=run.trainer.strategy)
    for doing, said in (("training", remedy), ("testing", "one picture at a time")):
        with pytest.raises(MemoryError, match=said), explaining_memory(run, doing):
            full()
