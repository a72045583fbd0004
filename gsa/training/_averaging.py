"""An exponential moving average of the weights, where the network is trained."""

import lightning
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging

__all__ = ["AveragedWeights"]


class AveragedWeights(EMAWeightAveraging):
    """Lightning's average, on the device of the training.

        w̄ ← decay · w̄ + (1 − decay) · w,   after every step

    Lightning makes it where the network is before the trainer has moved it, on the CPU, to which a GPU's weights would
    be copied after every step; and it would read from the GPU how many steps have been averaged.

    Args:
        decay: share of the average that is kept, such as 0.999.
    """

    def __init__(self, decay: float) -> None:
        super().__init__(decay=decay)

    def setup(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str) -> None:
        self._device = trainer.strategy.root_device
        super().setup(trainer, pl_module, stage)
        if self._average_model is not None:
            self._average_model.n_averaged = torch.zeros((), dtype=torch.long)

    @property
    def state_key(self) -> str:
        return EMAWeightAveraging.__qualname__  # as checkpoints have it
