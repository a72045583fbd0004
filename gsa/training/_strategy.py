"""Several processes for one run."""

from datetime import timedelta

import lightning
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.utilities import rank_zero_warn
from torch import nn

from gsa.training.adapter import BATCH_NORM, synchronises_batch_norm

__all__ = ["ddp", "warn_of_batch_norm"]


def ddp(timeout: float = 1800.0, find_unused_parameters: bool = False) -> DDPStrategy:
    """Distributed data parallel training: every process holds the network and takes its share of each batch.

    Args:
        timeout: seconds that a process waits for the others before the run ends with an error.
        find_unused_parameters: for networks that do not use all of their parameters in every step.

    Raises:
        ValueError: a timeout that is not positive.
    """
    if timeout <= 0:
        raise ValueError(f"timeout must be positive, but got {timeout}")
    return DDPStrategy(
        timeout=timedelta(seconds=timeout),
        find_unused_parameters=find_unused_parameters,
        gradient_as_bucket_view=True,
    )


def warn_of_batch_norm(trainer: lightning.Trainer, network: nn.Module) -> None:
    """Say so where several processes do not train what one would."""
    alone = trainer.world_size == 1 or synchronises_batch_norm(trainer)
    if not alone and any(isinstance(module, BATCH_NORM) for module in network.modules()):
        rank_zero_warn(
            "batch norm takes its statistics from the share of each process, so these are not the steps of one "
            "process: trainer.sync_batchnorm=true on GPUs, or model.norm=sample, where the network has it"
        )
