"""What stops a run before numbers that are not numbers reach its weights."""

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor, nn
from torch.optim import Optimizer

from gsa.saved import first_not_finite
from gsa.training._muon import leaves_steps_out
from gsa.training.adapter import BATCH_NORM, scales_gradients

__all__ = ["FiniteSteps", "NotFinite"]

_FREE = ("cpu",)  # devices that need not be waited for
_TOGETHER = 16  # steps on others that are looked at together
_REMEDY = "a lower optimizer.lr, a longer scheduler.warmup, or trainer.gradient_clip_val=1"


class NotFinite(ArithmeticError):
    """Losses or gradients were not finite for several steps in a row."""


class FiniteSteps(Callback):
    """Leaves out a step whose loss or gradients are not finite, and ends the run after several in a row.

    A GPU is not waited for in between: an optimizer that can leave a step out by itself, as `gsa.training.Muon` and
    those of torch with fused=True, is told by a number on the device, and what came of the last 16 steps is looked at
    together. For other optimizers, and on the CPU, every step is looked at.

    Args:
        patience: how many in a row end it.

    Raises:
        ValueError: a patience that is not positive.
    """

    def __init__(self, patience: int = 3) -> None:
        if patience < 1:
            raise ValueError(f"patience must be at least 1, but got {patience}")
        self.patience = patience
        self._batch: Any = None
        self._loss = torch.zeros(())
        # What every step looks at, found once: of batch norms also what they were before the step.
        self._parameters: list[nn.Parameter] = []
        self._running: list[Tensor] = []
        self._before: list[Tensor] = []
        self._never: set[str] = set()  # finite, such as the −∞ of a mask
        # Bad steps in a row, now and at the most since they were looked at, on the device; and which were not yet.
        self._in_a_row, self._most, self._left_out = torch.zeros(3).unbind()
        self._unseen: list[int] = []
        self._steps = 0  # of the run, so far

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        norms = [m for m in module.modules() if isinstance(m, BATCH_NORM)]
        running = [statistic for m in norms for statistic in (m.running_mean, m.running_var)]
        running += [m.num_batches_tracked for m in norms if m.momentum is None]  # by which the mean of all is taken
        self._running = [statistic for statistic in running if statistic is not None]
        self._parameters = list(module.parameters())
        self._never = {name for name, value in module.state_dict().items() if first_not_finite({name: value})}
        self._before = [statistic.clone() for statistic in self._running]
        self._in_a_row, self._most, self._left_out = torch.zeros(3, device=module.device).unbind()
        self._unseen, self._steps = [], trainer.global_step

    def on_train_batch_start(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, batch: Any, index: int
    ) -> None:
        self._batch = batch
        if index % trainer.accumulate_grad_batches == 0 and self._running:
            torch._foreach_copy_(self._before, self._running)

    def on_before_backward(self, trainer: lightning.Trainer, module: lightning.LightningModule, loss: Tensor) -> None:
        # The gradients of an infinite loss may be finite, and are not to be believed. All processes then share the NaN.
        self._loss = loss.detach()
        loss.register_hook((self._loss * 0 + 1).mul)

    def on_before_optimizer_step(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, optimizer: Optimizer
    ) -> None:
        if scales_gradients(trainer):
            return  # its scaler does the same, and needs to
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        if not gradients:
            return
        norm = torch.stack(torch._foreach_norm(gradients)).sum()
        alone = leaves_steps_out(optimizer) and norm.device.type not in _FREE
        if not alone and math.isfinite(norm):
            self._in_a_row.zero_()
            return
        bad = norm.isfinite().logical_not()
        if alone:
            optimizer.found_inf = bad.float()  # type: ignore[attr-defined]
        for statistic, before in zip(self._running, self._before, strict=True):
            statistic.copy_(before.where(bad, statistic))
        self._in_a_row.add_(1).mul_(bad)  # in place, as all that a recorded step counts
        torch.maximum(self._most, self._in_a_row, out=self._most)
        self._left_out.add_(bad)
        if not alone:
            self._unseen, self._steps = [trainer.global_step], trainer.global_step + 1
            self._look(trainer, module)
            for parameter in self._parameters:
                parameter.grad = None  # no step, no decay, no trace in the optimizer's averages

    def on_train_batch_end(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, outputs: Any, batch: Any, index: int
    ) -> None:
        if trainer.global_step > self._steps:
            self._unseen.append(self._steps)
            self._steps = trainer.global_step
            if len(self._unseen) == _TOGETHER:
                self._look(trainer, module)

    def on_train_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self._look(trainer, module)
        if count := int(self._left_out):
            rank_zero_warn(
                f"steps of epoch {trainer.current_epoch} left out, as their loss or gradients were not finite: {count}"
            )
            self._left_out.zero_()

    def on_validation_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        loss = float(trainer.callback_metrics.get("val/loss", 0.0))
        if not math.isfinite(loss):
            rank_zero_warn(
                f"the validation loss of epoch {trainer.current_epoch} is {loss}: validation pictures, or the logits "
                "of some, are not finite"
            )

    def _look(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """End the run where too many steps in a row were bad."""
        ended, steps = self._most >= self.patience, self._unseen
        self._most.copy_(self._in_a_row)
        self._unseen = []
        if not ended:
            return
        last = f"step {steps[-1]}" if len(steps) == 1 else f"one of the steps {steps[0]} to {steps[-1]}"
        bad = (name for name, p in module.named_parameters() if p.grad is not None and not _is_finite(p.grad))
        network: Any = getattr(module, "network", module)
        if any(isinstance(part, Tensor) and not _is_finite(part) for part in _parts(self._batch)):
            what, remedy = "its batch", "Look at the data"
        else:
            loss = "" if _is_finite(self._loss) else "the loss"
            what = self._first_bad(network) or loss or f"the gradient of {next(bad, 'all parameters together')}"
            remedy = _remedy(trainer)
        raise NotFinite(
            f"{self.patience} steps in a row were not finite, the last being {last} of epoch "
            f"{trainer.current_epoch}: {what}. The weights are those before them. {remedy}"
        )

    def on_save_checkpoint(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """What is not finite is not saved: batch norms and averages can overflow where losses do not."""
        self._refuse_not_finite(checkpoint["state_dict"], trainer)

    def on_train_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        for optimizer in filter(leaves_steps_out, trainer.optimizers):
            optimizer.found_inf = None  # type: ignore[attr-defined]
        self._refuse_not_finite(module.state_dict(), trainer)

    def _refuse_not_finite(self, state: dict[str, Any], trainer: lightning.Trainer) -> None:
        name = first_not_finite({name: value for name, value in state.items() if name not in self._never})
        if name is not None:
            raise NotFinite(
                f"{name} is not finite after step {trainer.global_step} of epoch {trainer.current_epoch}; checkpoints "
                f"are those of before. {_remedy(trainer)}"
            )

    def _first_bad(self, network: nn.Module) -> str | None:
        """The first module in the order of the forward pass whose output is not finite, where that can be seen."""
        bad: list[str] = []

        def note(name: str, module: nn.Module, inputs: Any, output: Any) -> None:
            if isinstance(output, Tensor) and not _is_finite(output):
                bad.append(f"the output of {name or 'the network'} ({type(module).__name__})")

        hooks = [module.register_forward_hook(partial(note, name)) for name, module in network.named_modules()]
        norms = [module for module in network.modules() if isinstance(module, BATCH_NORM) and module.training]
        for norm in norms:
            norm.eval()  # by what it has seen: its batch would be that of all processes, some of which may have ended
        try:
            with torch.no_grad(), suppress(Exception):  # of a module of somebody's, which takes its batches otherwise
                network(self._batch[0])
        finally:
            for hook in hooks:
                hook.remove()
            for norm in norms:
                norm.train()
        return bad[0] if bad else None


def _parts(batch: Any) -> Sequence[Any]:
    return batch if isinstance(batch, Sequence) else (batch,)


def _is_finite(x: Tensor) -> bool:
    return bool(x.isfinite().all())


def _remedy(trainer: lightning.Trainer) -> str:
    half = "trainer.precision=bf16-mixed, as float16 ends at 65 504; " if trainer.precision.startswith("16") else ""
    return f"Try {half}{_REMEDY}"
