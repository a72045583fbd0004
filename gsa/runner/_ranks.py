"""One of several processes that train what one would."""

import os
import warnings

import lightning
from lightning.pytorch.utilities import rank_zero_only
from omegaconf import DictConfig

from gsa.runner._schema import ConfigError
from gsa.runner._slurm import SlurmStep
from gsa.training.adapter import environment_of, is_alone, is_ddp, started_from_outside

__all__ = ["check_batch_size", "check_processes", "is_first_rank", "know_rank", "needs_processes"]


def check_processes(trainer: lightning.Trainer, batch_size: int, draws_seed: bool) -> None:
    """Refuse ways to run several processes that would not train one run.

    Args:
        trainer: with its strategy.
        batch_size: of the whole run.
        draws_seed: whether every process would draw a seed for itself.

    Raises:
        ConfigError: naming the key.
    """
    if is_alone(trainer):
        started = int(os.environ.get("WORLD_SIZE", 1)) if "TORCHELASTIC_RUN_ID" in os.environ else 1
        if started > 1:
            raise ConfigError(
                f"torchrun has started {started} processes, of which each would train the whole run: expected "
                "trainer=ddp_nodes with trainer.num_nodes and trainer.devices, a process each, but got a trainer of one"
            )
        if SlurmStep.detect():
            warnings.warn(
                f"srun has started {SlurmStep().world_size()} processes, and this one trains a run of its own; "
                "trainer=ddp_nodes trains one in all of them",
                stacklevel=2,
            )
        return
    if not is_ddp(trainer):
        raise ConfigError(
            "trainer.strategy must be gsa.training.ddp for several processes, whose order and configuration it keeps "
            f"the same, but got {type(trainer.strategy).__name__}"
        )
    world, outside = trainer.world_size, started_from_outside(trainer)
    if trainer.num_nodes > 1 and not outside:
        raise ConfigError("trainer.num_nodes > 1 needs srun, submitit or torchrun to start the processes")
    if isinstance(environment := environment_of(trainer), SlurmStep):
        environment.validate_settings(trainer.num_devices, trainer.num_nodes)
    elif outside and (each := int(os.environ.get("LOCAL_WORLD_SIZE", 0))) not in (0, trainer.num_devices):
        raise ConfigError(
            f"torchrun has started {each} processes on this node: expected trainer.devices={each} "
            f"trainer.num_nodes={world // each}, but got {trainer.num_devices} and {trainer.num_nodes}"
        )
    check_batch_size(trainer, batch_size)
    if draws_seed and world > 1 and outside:
        raise ConfigError("seed=null draws another seed in every process: give one, such as seed=0")


def check_batch_size(trainer: lightning.Trainer, batch_size: int) -> None:
    """Refuse batches that cannot be shared out.

    Raises:
        ConfigError: with the number of processes.
    """
    if batch_size % (world := trainer.world_size):
        raise ConfigError(f"data.batch_size must be divisible by the {world} processes, but got {batch_size}")


def needs_processes(trainer: lightning.Trainer) -> bool:
    """Whether the trainer wants several processes, and neither torchrun nor a cluster has started them."""
    return is_ddp(trainer) and trainer.world_size > 1 and not started_from_outside(trainer)


def know_rank(config: DictConfig) -> None:
    """Settle whether this process is the one that writes, before it has a trainer, which would say so.

    A run of one process is its own first, whatever number srun has given it among others that train runs of their own.
    """
    if config.trainer.get("strategy") is None and "TORCHELASTIC_RUN_ID" not in os.environ:
        rank_zero_only.rank = 0  # type: ignore[attr-defined]


def is_first_rank() -> bool:
    """Whether this process is the one that writes."""
    return rank_zero_only.rank == 0  # type: ignore[attr-defined]  # Lightning keeps it on the function
