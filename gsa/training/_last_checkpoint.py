"""What a run goes on from."""

from typing import Any

import lightning

from gsa.training._checkpoint_key import KeyedCheckpoint
from gsa.training.adapter import batches_done, resume_accumulation, save_now

__all__ = ["LastCheckpoint"]


class LastCheckpoint(KeyedCheckpoint):
    """Saves at the end of every epoch, once it is validated; within epochs, too, if it is told to.

    Told by `every_n_train_steps` or `train_time_interval`, Lightning's own would save in place of that: after the last
    batch of an epoch, too, whose validation a resumed run would leave out, and between the batches of a step.
    """

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        super().on_train_start(trainer, module)
        resume_accumulation(trainer)  # once the other callbacks have begun, which expect what the trainer was given

    def on_train_batch_end(self, trainer: lightning.Trainer, *step: Any) -> None:
        done = batches_done(trainer)
        if done % trainer.accumulate_grad_batches == 0 and done < trainer.num_training_batches:
            super().on_train_batch_end(trainer, *step)

    def on_validation_end(self, *_: Any) -> None:
        """Its epoch is not at an end."""

    def on_train_epoch_end(self, trainer: Any, module: lightning.LightningModule) -> None:
        if (trainer.current_epoch + 1) % (self.every_n_epochs or 1) == 0 and not trainer.fast_dev_run:
            save_now(trainer, self)
