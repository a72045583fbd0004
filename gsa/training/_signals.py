"""What lets a run outlive a signal."""

import multiprocessing
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning
import torch.distributed
from lightning.pytorch.callbacks import Callback

from gsa._handled import handled
from gsa.training.adapter import batches_done, leave_signals_alone, resume_accumulation, strategy_timeout

__all__ = ["SaveOnSignal", "Stopped"]

_ONCE = 2.0  # seconds in which two signals to a process that another leads are the same wish


class Stopped(SystemExit):
    """The run was asked to stop by a signal, and ends the process with the code that shells expect.

    Attributes:
        code: 128 + the number of the signal.
        checkpoint: what a run may go on from; None where nothing had been saved.
    """

    code: int

    def __init__(self, number: int, checkpoint: Path | None) -> None:
        super().__init__(128 + number)
        self._number, self.checkpoint = number, checkpoint

    def __reduce__(self) -> tuple:  # out of the process of a sweep's job
        return Stopped, (self._number, self.checkpoint)

    def __str__(self) -> str:
        name = signal.Signals(self._number).name
        if self.checkpoint is None:
            return f"stopped by {name} before anything was saved"
        return f"stopped by {name} and saved in {self.checkpoint}"


class SaveOnSignal(Callback):
    """On Ctrl-C, SIGTERM, SIGUSR1, or SIGHUP of a terminal that is closed, saves after the training step at hand and
    stops; anywhere else, stops at once.

        with listener.listening():
            Trainer(callbacks=[listener]).fit(module, data)

    Before training, a run has nothing to lose; after it, in its test or report, all of it is on disk. A second signal
    stops at once, too. SIGUSR2 is heard where somebody has a handler for it, as submitit has, which tells a job so when
    its time is up or others come first: it is called once the run is saved. SIGHUP that is ignored, as by nohup, stays
    so, and a second one, which terminals send, hastens nothing. Where a job is told as a whole, a process hears it
    twice, from outside and from that which leads it, or from another of the run that was told before it.

    Args:
        dirpath: folder of last.ckpt.
        resumed: the checkpoint that the run goes on from.

    Attributes:
        received: the first signal.
        waits: whether a first signal is only noted, for those who ask for it; so it is while a run trains.
    """

    def __init__(self, dirpath: str, resumed: str | None = None) -> None:
        self._last, self._resumed = Path(dirpath) / "last.ckpt", None if resumed is None else Path(resumed)
        self.received: int | None = None
        self.waits = False
        self._listens = False
        self._saved = self._ends = False  # whether the run is saved; whether its job has been told that it ends
        self._is_passed_on = False  # whether another process has heard it first
        self._since = 0.0
        self._queues: Callable[[int, Any], Any] | None = None
        self._hosts: torch.distributed.ProcessGroup | None = None
        self._before = _written(self._last)

    @property
    def checkpoint(self) -> Path | None:
        """What holds the run: what it has saved, or went on from. A file of another run may be in its folder."""
        return self._last if _written(self._last) != self._before else self._resumed

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While inside, signals come here; around all that a run does."""
        self.received, self._saved, self._ends, self._before = None, False, False, _written(self._last)
        self._is_passed_on = False
        self._queues = handler if callable(handler := signal.getsignal(signal.SIGUSR2)) else None
        ours = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, *([signal.SIGUSR2] if self._queues else [])]
        if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
            ours.append(signal.SIGHUP)
        with handled(ours, self._receive):
            self._listens = True
            try:
                yield
            finally:
                self._listens = False

    def _receive(self, number: int, frame: Any) -> None:
        now = time.monotonic()
        is_first = self.received is None
        if is_first:
            self.received, self._since = number, now
        is_passed_on = (self._is_passed_on or _has_leader()) and now - self._since <= _ONCE
        is_echo = not is_first and (is_passed_on or number == signal.SIGHUP)
        if self.received == signal.SIGUSR1 and number == signal.SIGTERM and not self._ends:
            self._ends = is_echo = True  # of SLURM, when the run that saved first has its job queued again
        if not (is_echo or (is_first and self.waits)):
            self._stop(number)

    def setup(self, trainer: lightning.Trainer, module: lightning.LightningModule, stage: str) -> None:
        others = [callback for callback in trainer.callbacks if callback is not self]  # type: ignore[attr-defined]
        trainer.callbacks = [*others, self]  # type: ignore[attr-defined]  # saves what the others have made of a step
        if self._listens:
            leave_signals_alone(trainer)
        elif stage == "fit":
            warnings.warn("a signal will not save this run: SaveOnSignal hears inside listening() only", stacklevel=2)

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self.waits = True
        if torch.distributed.is_initialized():  # hosts ask one another: over NCCL they would wait for their GPUs
            self._hosts = torch.distributed.new_group(backend="gloo", timeout=strategy_timeout(trainer))
        resume_accumulation(trainer)  # once the other callbacks have begun, which expect what the trainer was given

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        done = batches_done(trainer)
        if done % trainer.accumulate_grad_batches or done >= trainer.num_training_batches:
            return  # between the halves of a step, or with the validation of the epoch still to come
        self._save_if_anyone_was_told(trainer)
        self._stop_if_saved()

    def on_train_epoch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        self._save_if_anyone_was_told(trainer)  # after the other checkpoints, and before the epoch is logged

    def on_train_epoch_start(self, *_: Any) -> None:
        self._stop_if_saved()

    def on_fit_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self.waits = False  # now that Lightning has let go of its loaders, in which nothing may interrupt it

    def on_exception(self, trainer: lightning.Trainer, *_: Any) -> None:
        self.waits = False

    def _save_if_anyone_was_told(self, trainer: lightning.Trainer) -> None:
        if self._anyone_was_told():
            trainer.save_checkpoint(self._last, weights_only=False)  # with all that a resumed run needs
            self._saved = True

    def _anyone_was_told(self) -> bool:
        if self._hosts is None:
            return self.received is not None
        number = torch.tensor(int(self.received or 0))
        torch.distributed.all_reduce(number, torch.distributed.ReduceOp.MAX, group=self._hosts)
        if number and self.received is None:  # this process will be told, too, while it saves
            self.received, self._since, self._is_passed_on = int(number), time.monotonic(), True
        return bool(number)

    def _stop_if_saved(self) -> None:
        if self._saved:
            self._stop(self.received or signal.SIGTERM)

    def _stop(self, number: int) -> None:
        if number == signal.SIGUSR2 and self._queues:
            self._queues(number, None)  # which ends the process, if it is the one that has its job queued again
        raise Stopped(number, self.checkpoint)

    def stop_if_told(self) -> None:
        """Raise `Stopped` after training whose last steps were not interrupted; its checkpoint is on disk."""
        if self.received is not None:
            self._stop(self.received)


def _has_leader() -> bool:
    """Whether another process passes on to this one what it is told: that of a run, or of a sweep."""
    return torch.distributed.is_torchelastic_launched() or multiprocessing.parent_process() is not None


def _written(file: Path) -> int | None:
    """When a file was, if it is there."""
    return file.stat().st_mtime_ns if file.is_file() else None
