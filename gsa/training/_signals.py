"""What lets a run outlive a signal."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning
import torch.distributed
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities import rank_zero_info

from gsa.training.adapter import batches_done

__all__ = ["SaveOnSignal", "Stopped"]

_ONCE = 1.0  # seconds in which two signals to one of several processes are the same wish


class Stopped(SystemExit):
    """The run was asked to stop by a signal, has saved itself, and ends the process with the code that shells expect.

    Attributes:
        code: 128 + the number of the signal.
        checkpoint: what `ckpt_path=` goes on from.
    """

    def __init__(self, number: int, checkpoint: Path) -> None:
        super().__init__(128 + number)
        self._number, self.checkpoint = number, checkpoint

    def __str__(self) -> str:
        name = signal.Signals(self._number).name
        return f"stopped by {name}; the same command goes on with  ckpt_path={self.checkpoint}"


class SaveOnSignal(Callback):
    """On Ctrl-C or SIGTERM, saves after the step at hand and stops; a second signal stops at once.

    Where a job is told as a whole, one of several processes hears it twice: from outside and from its parent.

    Args:
        dirpath: folder of last.ckpt.
    """

    def __init__(self, dirpath: str) -> None:
        self.checkpoint = Path(dirpath) / "last.ckpt"
        self.received: int | None = None
        self._since = 0.0
        self._before: dict[int, Any] = {}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While inside, signals are noted here. Around the whole of `fit`: Lightning puts back what it found."""
        self.received = None
        try:
            self._before = {n: signal.signal(n, self._receive) for n in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not the main thread, which alone may listen
            self._before = {}
        before = dict(self._before)
        try:
            yield
        finally:
            self._before = before
            self._restore()

    def _receive(self, number: int, frame: Any) -> None:
        now = time.monotonic()
        if self.received is None:
            self.received, self._since = number, now
        elif not torch.distributed.is_torchelastic_launched() or now - self._since > _ONCE:
            self._restore()
            signal.raise_signal(number)

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        for number in self._before:  # again: Lightning has put a handler of its own in front of ours
            signal.signal(number, self._receive)

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        done = batches_done(trainer)
        if done % trainer.accumulate_grad_batches or done >= trainer.num_training_batches:
            return  # between the halves of a step, or with the validation of the epoch still to come
        if trainer.strategy.reduce_boolean_decision(self.received is not None, all=False):
            trainer.save_checkpoint(self.checkpoint, weights_only=False)  # with all that a resumed run needs
            stopped = Stopped(self.received or signal.SIGTERM, self.checkpoint)  # or another process was told
            rank_zero_info(str(stopped))
            raise stopped

    def stop_if_told(self) -> None:
        """After the last step of a run, whose checkpoint is on disk."""
        if self.received is not None:
            raise Stopped(self.received, self.checkpoint)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
