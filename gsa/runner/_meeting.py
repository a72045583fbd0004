"""Where the processes of a run meet: those that torchrun or srun has started meet for every job of a sweep anew."""

import os
import signal
from datetime import timedelta
from functools import cache

import lightning
import torch.distributed as dist
from torch.distributed import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from gsa._handled import handled
from gsa.training.adapter import is_ddp, meeting_of, started_from_outside

__all__ = ["leave_group", "meet"]


def meet(trainer: lightning.Trainer, place: str) -> None:
    """Join the other processes of a run in a place of its own, unless Lightning starts or knows them.

    Lightning meets where the processes have met before, finds the addresses of then, and waits for ever.

    Args:
        trainer: of the run.
        place: by which all processes call this run, and no other that they train after the first.
    """
    if not (is_ddp(trainer) and started_from_outside(trainer)) or dist.is_initialized():
        return
    backend, rank, world, timeout, device = meeting_of(trainer)
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    met = _store.cache_info().currsize  # the first place needs no name, for which machines may have other paths
    # Python hears no signal while others are waited for: one ends this process, which has nothing to lose.
    with handled((signal.SIGINT, signal.SIGTERM, signal.SIGUSR1), signal.SIG_DFL):
        store = PrefixStore(f"{place if met else ''} {restarts}", _store(rank, world, timeout))
        dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=timeout, device_id=device)


def leave_group() -> None:
    """Part from the other processes of a run; those of the next job of a sweep meet anew."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


@cache  # the first process may hold it, and the others come for as long as there are jobs
def _store(rank: int, world: int, timeout: timedelta) -> Store:
    return next(iter(rendezvous("env://", rank, world, timeout=timeout)))[0]
