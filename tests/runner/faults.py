"""What makes runs fail, or be told to stop, at a place of their way; and what says what every process trains."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from lightning.pytorch.callbacks import Callback

import gsa.training


def act_in(patch, epoch, index, action, part="training"):
    """Do something once while a run is in the midst of a step."""
    ours = getattr(gsa.training.Classifier, f"{part}_step")

    def step(module, batch, batch_index):
        place = (module.trainer.current_epoch, batch_index)
        if place == (epoch, index) and not module.trainer.sanity_checking:
            patch.undo()
            action(module)
        return ours(module, batch, batch_index)

    patch.setattr(f"gsa.training.Classifier.{part}_step", step)


class FailAt(Callback):
    """In the second epoch, one rank raises, is killed, or hangs; the one that FAILING_RANK names, if none is given."""

    def __init__(self, how: str, rank: int | None = None) -> None:
        self.how, self.rank = how, int(os.environ.get("FAILING_RANK", -1)) if rank is None else rank

    def on_train_batch_start(self, trainer, module, batch, index) -> None:
        if (trainer.current_epoch, index, trainer.global_rank) == (1, 1, self.rank):
            if self.how == "raise":
                raise RuntimeError("planted: this rank has failed")
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)


class KillWandb(Callback):
    """In the second epoch, the process to which this one tells what it logs is killed."""

    def on_train_epoch_start(self, trainer, module) -> None:
        if trainer.current_epoch == 1:
            found = subprocess.run(
                ["pgrep", "-P", str(os.getpid()), "-f", "wandb-core"], capture_output=True, text=True
            )
            for process in map(int, found.stdout.split()):
                os.kill(process, signal.SIGKILL)
            time.sleep(0.5)  # until it is known


class TellConfig(Callback):
    """Every rank writes the hyperparameters that it trains with."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def on_fit_start(self, trainer, module) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        told = {"lr": trainer.optimizers[0].param_groups[0]["initial_lr"], "seed": module.hparams["run"]["seed"]}
        name = f"{trainer.global_rank}-{os.getpid()}-{time.time_ns()}.json"
        (self.folder / name).write_text(json.dumps(told))


class TellParent(Callback):
    """The process that has started the ranks is told to stop while they are at a place of their way.

    That is the hook of Lightning's which TOLD_AT names, such as on_test_start.
    """

    def __init__(self):
        if place := os.environ.get("TOLD_AT"):
            setattr(self, place, self._tell)

    def _tell(self, trainer, *_):
        if trainer.global_rank == 0:
            os.kill(os.getppid(), signal.SIGTERM)
            time.sleep(2)


class RemovePictures(Callback):
    """A folder of pictures is emptied while a run trains."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def on_train_start(self, trainer, module) -> None:
        for file in self.folder.iterdir():
            file.unlink()
