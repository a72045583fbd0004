"""A run survives, or refuses before it begins, what its machine lacks: disks, folders, workers, defaults."""

import errno
import os
import signal

import pytest
import torch

import gsa
from gsa.runner import ConfigError, train
from tests.runner.test_run import outcome


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


@pytest.mark.parametrize("defaults, said", [
    (torch.inference_mode, "gradients, but got none"), (torch.no_grad, "gradients, but got none"),
    (lambda: torch.device("meta"), "the default device cpu, but got meta"),
])  # fmt: skip
def test_other_defaults_of_torch_are_refused_before_anything_is_made(small, tmp_path, defaults, said):
    config = small()
    with defaults(), pytest.raises(ConfigError, match=f"a run needs torch as it comes, with {said}"):
        train(config)
    assert not (tmp_path / "run").exists()


def test_another_default_dtype_is_refused(small, float64):
    with pytest.raises(ConfigError, match=r"with the default dtype torch.float32, but got torch.float64"):
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
