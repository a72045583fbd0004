"""What stops a run before numbers that are not numbers reach its weights."""

import math
from collections.abc import Callable
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor, nn
from torch.optim import Optimizer

from gsa.saved import first_not_finite
from gsa.training.adapter import BATCH_NORM, scales_gradients

__all__ = ["FiniteSteps", "NotFinite"]

_REMEDY = "Try a lower optimizer.lr, a longer scheduler.warmup, or trainer.gradient_clip_val=1"


class NotFinite(ArithmeticError):
    """Losses or gradients were not finite for several steps in a row."""


class FiniteSteps(Callback):
    """Leaves out a step whose loss or gradients are not finite, and ends the run after several in a row.

    Args:
        patience: how many in a row end it.

    Raises:
        ValueError: a patience that is not positive.
    """

    def __init__(self, patience: int = 3) -> None:
        if patience < 1:
            raise ValueError(f"patience must be at least 1, but got {patience}")
        self.patience, self.in_a_row = patience, 0
        self._batch: Any = None
        # What every step looks at, found once: of batch norms also what they were before the step.
        self._parameters: list[nn.Parameter] = []
        self._running: list[Tensor] = []
        self._before: list[Tensor] = []

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        norms = [m for m in module.modules() if isinstance(m, BATCH_NORM)]
        running = [statistic for m in norms for statistic in (m.running_mean, m.running_var)]
        self._running = [statistic for statistic in running if statistic is not None]
        self._parameters = list(module.parameters())

    def on_train_batch_start(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, batch: Any, index: int
    ) -> None:
        self._batch = batch
        if index % trainer.accumulate_grad_batches == 0:
            self._before = [statistic.clone() for statistic in self._running]

    def on_before_backward(self, trainer: lightning.Trainer, module: lightning.LightningModule, loss: Tensor) -> None:
        finite = loss.detach().isfinite()  # the gradients of an infinite loss may be: they are not to be believed
        loss.register_hook(lambda grad: grad.where(finite, math.nan))  # which all processes of a run then share

    def on_before_optimizer_step(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, optimizer: Optimizer
    ) -> None:
        if scales_gradients(trainer):
            return  # its scaler does the same, and needs to
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        if not gradients or math.isfinite(torch.stack(torch._foreach_norm(gradients)).sum()):
            self.in_a_row = 0
            return
        self.in_a_row += 1
        bad = (name for name, p in module.named_parameters() if p.grad is not None and not _is_finite(p.grad))
        wrong = next(bad, "all parameters together")
        for parameter in self._parameters:
            parameter.grad = None  # no step, no decay, no trace in the optimizer's averages
        for statistic, before in zip(self._running, self._before, strict=True):
            statistic.copy_(before)
        if self.in_a_row == self.patience:
            network: Any = module.network
            raise NotFinite(
                f"{self.patience} steps in a row were not finite, the last being step {trainer.global_step} of epoch "
                f"{trainer.current_epoch}: {self._first_bad(network) or f'the gradient of {wrong}'}. The "
                f"weights are those before them. {_REMEDY}"
            )

    def on_save_checkpoint(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """What is not finite is not saved: batch norms and averages can overflow where losses do not."""
        _refuse_not_finite(checkpoint["state_dict"], trainer)

    def on_train_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        _refuse_not_finite(module.state_dict(), trainer)

    def _first_bad(self, network: nn.Module) -> str | None:
        """The first module in the order of the forward pass whose output is not finite."""
        bad: list[str] = []

        def note(name: str) -> Callable[[nn.Module, Any, Any], None]:
            def hook(module: nn.Module, inputs: Any, output: Any) -> None:
                if isinstance(output, Tensor) and not _is_finite(output):
                    bad.append(f"the output of {name or 'the network'} ({type(module).__name__})")

            return hook

        hooks = [module.register_forward_hook(note(name)) for name, module in network.named_modules()]
        try:
            with torch.no_grad():
                network(self._batch[0])
        finally:
            for hook in hooks:
                hook.remove()
        return bad[0] if bad else None


def _refuse_not_finite(state: dict[str, Any], trainer: lightning.Trainer) -> None:
    if (name := first_not_finite(state)) is not None:
        raise NotFinite(
            f"{name} is not finite after step {trainer.global_step} of epoch {trainer.current_epoch}; checkpoints are "
            f"those of before. {_REMEDY}"
        )


def _is_finite(x: Tensor) -> bool:
    return bool(x.isfinite().all())
