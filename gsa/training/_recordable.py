"""Whether training steps can be recorded."""

from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback
from torch.optim import Optimizer

from gsa.training._finite_steps import FiniteSteps
from gsa.training._fused import can_be_fused
from gsa.training._muon import Muon
from gsa.training.adapter import accumulated, fuses, is_alone, is_idle, looks_for_anomalies, scales_gradients

__all__ = ["check_recordable"]

_ON = ("cuda",)
_BY_WHICH = (
    "by an optimizer that leaves out by itself what is not finite: gsa.training.muon, or torch's Adam, AdamW or SGD, "
    "fused"
)
_NO_FUSED = " (none is fused where it is told otherwise, nor in mixed precision with gradient_clip_val)"
_WITHIN = ("on_before_zero_grad", "on_before_backward", "on_after_backward", "on_before_optimizer_step")


def check_recordable(
    trainer: lightning.Trainer, optimizer: Optimizer, module: lightning.LightningModule | None = None
) -> None:
    """Look at what will train before its steps are recorded.

    Raises:
        ValueError: with what the host would do within every step.
    """
    rule = "a step is recorded as a whole (compile=graph)"
    owner: Any = trainer  # which does not declare its callbacks
    within = [c for c in owner.callbacks if not isinstance(c, FiniteSteps) and _acts(c, Callback)]
    together = {accumulated(trainer, epoch) for epoch in range(max(trainer.max_epochs or 1, 1))}
    if (device := trainer.strategy.root_device.type) not in _ON:
        raise ValueError(f"{rule} on a CUDA device, but the trainer has one of type {device}")
    if not is_alone(trainer):
        raise ValueError(f"{rule} where one device is alone, but the trainer has {trainer.world_size} processes")
    if together != {1}:
        raise ValueError(f"{rule}, but gradients of {max(together)} batches are accumulated in one")
    if scales_gradients(trainer):
        raise ValueError(
            f"{rule}, but the scaler of 16-mixed asks the host in its midst: expected 32-true or bf16-mixed"
        )
    if looks_for_anomalies(trainer):
        raise ValueError(f"{rule}, but detect_anomaly asks the host in its midst")
    if within or (module is not None and _acts(module, lightning.LightningModule)):
        raise ValueError(f"{rule}, but {type(within[0] if within else module).__name__} acts within every one")
    if not (isinstance(optimizer, Muon) or (fuses(trainer) and can_be_fused(optimizer))):
        raise ValueError(f"{rule} {_BY_WHICH}, but got {type(optimizer).__name__}{_NO_FUSED}")


def _acts(owner: object, kind: type) -> bool:
    """Whether it has hooks of its own, set on it or on its class, that replays would pass over."""
    return not all(is_idle(owner, hook, kind) for hook in _WITHIN)
