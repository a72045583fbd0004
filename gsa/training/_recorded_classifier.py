"""A network in training whose steps a GPU is told of once."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from gsa.training._classifier import Classifier
from gsa.training._recordable import check_recordable
from gsa.training._recorded_steps import RecordedSteps, structure
from gsa.training.adapter import answer, result_of

__all__ = ["RecordedClassifier"]


class RecordedClassifier(Classifier):
    """A `Classifier` whose training steps are recorded as a whole, as one CUDA graph, and replayed (`RecordedSteps`).

    The steps, and all that comes of them, are those of a `Classifier`, up to rounding. On a GPU that waits for its
    launches, as it does with small networks, they take a fraction of the time.

    Args:
        arguments, options: as of `Classifier`.

    Raises:
        ValueError: mixup; when training begins, what a replay would pass over (`check_recordable`).
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.training_loss.mixup:
            raise ValueError("recorded steps cannot mix pictures, because mixup draws its share on the host")
        self._recorded_steps = RecordedSteps()
        self._batch: Any = None  # at hand
        self._structure: Any = None  # of the network in this epoch
        self._loss: Any = None  # of the recording, which lies where that of every replay does
        self._found: Any = None  # likewise: loss, how many were right, of how many

    def on_train_start(self) -> None:
        super().on_train_start()
        self._recorded_steps.end()  # of a training that has failed
        check_recordable(self.trainer, self.trainer.optimizers[0], self)
        if type(self).training_step is not RecordedClassifier.training_step:
            raise ValueError(f"recorded steps are those of Classifier, but {type(self).__name__} has its own")

    def on_train_epoch_start(self) -> None:
        self._structure = structure(self.network)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        self._batch = self._recorded_steps.place(batch)

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        return super().training_step(self._batch, index)

    def optimizer_step(
        self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Callable[[], Any] | None = None
    ) -> None:
        trainer, step = self.trainer, partial(super().optimizer_step, epoch, batch_idx, optimizer, optimizer_closure)
        if trainer.accumulate_grad_batches != 1:  # as callbacks may have it for an epoch
            step()
            return
        others = self._structure, trainer.gradient_clip_val, trainer.gradient_clip_algorithm
        if self._recorded_steps.take(step, self._batch, trainer.optimizers[0], *others):
            self.part = "train"
            if (loss := result_of(optimizer_closure)) is not None:  # this was the recording
                self._loss = loss
            answer(optimizer_closure, self._loss)
            loss, right, count = self._found
            self._note("train", loss.clone(), right.clone(), count)

    def on_train_end(self) -> None:
        self._recorded_steps.end()

    def _check_labels(self, part: str, labels: Tensor) -> None:
        if not self._recorded_steps.is_recording:  # which could not ask a GPU; steps before it have
            super()._check_labels(part, labels)

    def _note(self, part: str, loss: Tensor, right: Tensor, count: int) -> None:
        if self._recorded_steps.is_recording:
            self._found = loss, right, count
        else:
            super()._note(part, loss, right, count)
