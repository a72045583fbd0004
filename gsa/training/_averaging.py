"""An exponential moving average of the weights, where the network is trained."""

from collections import defaultdict
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging
from torch import Tensor, nn

__all__ = ["AveragedWeights"]


class AveragedWeights(EMAWeightAveraging):
    """Lightning's average, on the device of the training.

        w̄ ← decay · w̄ + (1 − decay) · w,   after every step

    Lightning makes it where the network is before the trainer has moved it, on the CPU, to which a GPU's weights would
    be copied after every step. Torch takes one tensor after another, and for each copies the number of steps to the
    GPU, which is waited for; here all are taken together, with the same bits, and the number stays on the CPU.

    Args:
        decay: share of the average that is kept, such as 0.999.
    """

    def __init__(self, decay: float) -> None:
        super().__init__(decay=decay)
        self._decay = decay

    def setup(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str) -> None:
        self._device = trainer.strategy.root_device
        super().setup(trainer, pl_module, stage)
        if self._average_model is not None:
            self._average_model.n_averaged = torch.zeros((), dtype=torch.long)
            if trainer.precision == "64-true":  # to which the network is converted later
                self._average_model.module.double()

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step > self._latest_update_step:
            self._update(pl_module)
            self._latest_update_step = trainer.global_step

    @torch.no_grad()
    def _update(self, network: nn.Module) -> None:
        average = self._average_model
        assert average is not None
        if average.n_averaged:
            self.move(average.module, network, self._decay)
        else:
            torch._foreach_copy_(_tensors(average.module), _tensors(network))
        average.n_averaged += 1

    @staticmethod
    @torch.no_grad()
    def move(average: nn.Module, network: nn.Module, decay: float) -> None:
        """One update of a copy of the network, buffers included."""
        of_dtype: dict[torch.dtype, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for mean, value in zip(_tensors(average), _tensors(network), strict=True):
            of_dtype[mean.dtype].append((mean, value))
        for pairs in of_dtype.values():
            means, values = ([pair[side] for pair in pairs] for side in (0, 1))
            kept, added = torch._foreach_mul(means, decay), torch._foreach_mul(values, 1 - decay)
            torch._foreach_copy_(means, torch._foreach_add(kept, added))

    @property
    def state_key(self) -> str:
        return EMAWeightAveraging.__qualname__  # as checkpoints have it


def _tensors(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]
