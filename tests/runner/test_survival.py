"""Runs leave out what is not finite, and outlive full disks and dead workers."""

import errno
import math
import os
import signal

import pytest
import torch

import gsa
from gsa.runner import train
from gsa.saved import first_not_finite, read_checkpoint
from gsa.training import NotFinite
from tests.runner.faults import act_in
from tests.runner.test_run import outcome


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_steps_that_are_not_finite_are_left_out_and_end_the_run(small, tmp_path, value):
    config = small("trainer.max_epochs=3", "trainer.limit_train_batches=6")
    seen = []

    def backward(module, loss):
        if module.trainer.current_epoch == 1:
            loss = loss * value
            seen.append([p.detach().clone() for p in module.parameters()])
        loss.backward()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gsa.training.Classifier.backward", backward)
        with pytest.raises(NotFinite, match="3 steps in a row were not finite, .* of epoch 1: the gradient of network"):
            train(config)
    assert len(seen) == 3 and all(torch.equal(a, b) for a, b in zip(seen[0], seen[2], strict=True))
    for name in ("best", "last"):
        state = read_checkpoint(tmp_path / "run" / "checkpoints" / f"{name}.ckpt")["state_dict"]
        assert all(value.isfinite().all() for value in state.values())


def test_an_infinite_loss_is_left_out_although_its_gradients_are_finite(small):
    ours = gsa.training.Classifier.training_step
    with pytest.MonkeyPatch.context() as patch, pytest.raises(NotFinite, match="of epoch 0"):
        patch.setattr("gsa.training.Classifier.training_step", lambda *a: ours(*a) + float("inf"))
        train(small("trainer.max_epochs=1", "trainer.limit_train_batches=4"))


def test_a_single_step_that_is_not_finite_does_not_end_the_run(small):
    def backward(module, loss):
        (loss * float("nan") if module.trainer.global_step == 1 and not done else loss).backward()
        done.append(module.trainer.global_step == 1)

    done = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gsa.training.Classifier.backward", backward)
        _, objects = train(small("trainer.max_epochs=1", "trainer.limit_train_batches=4"))
    assert all(p.isfinite().all() for p in objects["network"].parameters())


def test_the_first_bad_module_is_named(small):
    def spoil(module):
        torch.nn.init.constant_(module.network.lifting.query.weight if hasattr(module.network.lifting, "query")
                                else next(module.network.lifting.parameters()), float("nan"))  # fmt: skip

    with pytest.MonkeyPatch.context() as patch, pytest.raises(NotFinite, match=r"the output of lifting"):
        act_in(patch, 0, 1, spoil)
        train(small("trainer.max_epochs=1", "trainer.limit_train_batches=6"))


@pytest.mark.parametrize("callbacks", ["quiet", "none"])
def test_what_is_not_finite_is_neither_saved_nor_a_success(small, tmp_path, callbacks):
    def overflow(module):
        next(m for m in module.network.modules() if isinstance(m, torch.nn.BatchNorm3d)).running_var.fill_(math.inf)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(NotFinite, match=r"running_var is not finite after step"):
        act_in(patch, 1, 3, overflow)
        train(small("model.norm=batch", "ema=null", f"callbacks={callbacks}"))
    for file in (tmp_path / "run" / "checkpoints").glob("*.ckpt"):
        assert first_not_finite(read_checkpoint(file)["state_dict"]) is None
    assert not (tmp_path / "run" / "report.json").exists()


@pytest.mark.parametrize("place", ["draw_gallery", pytest.param("write_report", marks=pytest.mark.slow)])
def test_a_full_disk_at_the_end_loses_nothing(small, place):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    whole = outcome(train(small("report=true", folder="whole"))[1])
    with pytest.MonkeyPatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(f"gsa.runner._run.{place}", full)
        train(small("report=true"))
    weights, *rest = outcome(train(small("report=true", "ckpt_path=auto"))[1])
    assert rest == list(whole[1:]) and all(torch.equal(weights[name], whole[0][name]) for name in weights)


def test_a_folder_that_cannot_be_written_is_refused_before_the_first_step(small, tmp_path):
    (tmp_path / "run").write_text("a file where the folder should be")
    with pytest.raises(ValueError, match="output_dir must be a folder that can be written, but"):
        train(small())


class Dies(torch.utils.data.Dataset):
    """A worker that is killed while it loads."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        if torch.utils.data.get_worker_info() is not None and index == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.dataset[index]


def test_a_worker_that_dies_ends_the_run(small, monkeypatch):
    load = gsa.data.DigitsDataModule.load
    monkeypatch.setattr(gsa.data.DigitsDataModule, "load", lambda m: {k: Dies(v) for k, v in load(m).items()})
    with pytest.raises(RuntimeError, match="DataLoader worker .* (killed|exited)"):
        train(small("data.num_workers=1", batches=75))


def test_a_forward_pass_that_is_not_finite_leaves_no_trace_in_batch_norms(small):
    """Planted failure: without the statistics put back, they stay NaN for ever."""

    def spoil_once(module):
        hook = module.network.lifting.register_forward_hook(lambda *args: hook.remove() or args[2] * float("nan"))

    options = ("model.norm=batch", "trainer.max_epochs=1", "trainer.limit_train_batches=4")
    with pytest.MonkeyPatch.context() as patch:
        act_in(patch, 0, 1, spoil_once)
        _, objects = train(small(*options))
    state = objects["network"].state_dict()
    assert any("running_var" in name for name in state)
    assert all(value.isfinite().all() for value in state.values())
