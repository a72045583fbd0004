"""Several processes for one run: each is started on the configuration that the first one has written.

A process that composed its own configuration could train another one: a sweeper draws new values in every process.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lightning
import torch.distributed
from lightning.pytorch.utilities import rank_zero_only

from gsa.runner._schema import ConfigError
from gsa.training._lightning import is_alone, is_ddp, started_from_outside, synchronises_batch_norm

__all__ = ["check_processes", "is_first_rank", "other_ranks"]

GRACE = 20  # seconds for a process to fail by itself, before it is ended
_VARIABLES = ("LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


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
        return
    if not is_ddp(trainer):
        raise ConfigError(
            "trainer.strategy must be gsa.training.ddp for several processes, whose order and configuration it keeps "
            f"the same, but got {type(trainer.strategy).__name__}"
        )
    world, outside = trainer.world_size, started_from_outside(trainer)
    if trainer.num_nodes > 1 and not outside:
        raise ConfigError("trainer.num_nodes > 1 needs srun, submitit or torchrun to start the processes")
    if synchronises_batch_norm(trainer) and trainer.strategy.root_device.type != "cuda":
        raise ConfigError(
            "trainer.sync_batchnorm needs GPUs, elsewhere batch norm takes the share of each process for itself: set "
            "trainer.sync_batchnorm=false"
        )
    if batch_size % world:
        raise ConfigError(f"data.batch_size must be divisible by the {world} processes, but got {batch_size}")
    if draws_seed and world > 1 and outside:
        raise ConfigError("seed=null draws another seed in every process: give one, such as seed=0")


def is_first_rank() -> bool:
    """Whether this process is the one that writes."""
    return rank_zero_only.rank == 0


@contextmanager
def other_ranks(trainer: lightning.Trainer, folder: Path) -> Iterator[None]:
    """Start the other processes of a run on its folder's config.yaml, and see that all of them end.

    Nothing happens for a single process, or where torchrun or a cluster has started them. A process that fails is
    quoted here and ends the run; what the others print is in rank_<n>.log.
    """
    if not is_ddp(trainer) or started_from_outside(trainer):
        yield
        _leave_group()
        return
    world = trainer.num_devices
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port()), "NODE_RANK": "0", "LOCAL_RANK": "0"}
    os.environ["WORLD_SIZE"] = str(world)
    children = [_start(rank, folder) for rank in range(1, world)]
    watcher = _Watcher(children, folder)
    watcher.start()
    try:
        yield
        watcher.stop()
        for child in children:
            child.wait(GRACE)
    except BaseException:
        watcher.look(patience=3)  # another process may have failed first, and this one because of it
        raise
    finally:
        watcher.stop()
        _end(children)
        _leave_group()
        for name in _VARIABLES:
            os.environ.pop(name, None)


def _start(rank: int, folder: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "gsa.runner.rank", str(folder / "config.yaml"), str(os.getpid())]
    with (folder / f"rank_{rank}.log").open("w") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | {"LOCAL_RANK": str(rank)}
        )


class _Watcher(threading.Thread):
    """Shows the error of a process that has died, and ends this one where that leaves it waiting for ever."""

    def __init__(self, children: list[subprocess.Popen], folder: Path) -> None:
        super().__init__(daemon=True, name="ranks")
        self.children, self.folder, self._stopped = children, folder, threading.Event()
        self._shown: set[int] = set()
        self._looking = threading.Lock()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        while not self._stopped.wait(0.5):
            if self.look() and not self._stopped.wait(GRACE):
                _end(self.children)
                os._exit(1)

    def look(self, patience: float = 0) -> bool:
        """Whether a process has failed, perhaps within some seconds; the end of what it said is shown once."""
        deadline = time.monotonic() + patience
        while True:
            with self._looking:
                for rank, child in enumerate(self.children, 1):
                    if child.poll() and rank not in self._shown:
                        self._shown.add(rank)
                        log = self.folder / f"rank_{rank}.log"
                        print(f"rank {rank} ended with code {child.returncode}; the end of {log}:", file=sys.stderr)
                        print("\n".join(log.read_text().splitlines()[-25:]), file=sys.stderr, flush=True)
            if self._shown or time.monotonic() >= deadline:
                return bool(self._shown)
            time.sleep(0.1)


def _end(children: list[subprocess.Popen]) -> None:
    for child in children:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 5
    for child in children:
        try:
            child.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _leave_group() -> None:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _free_port() -> int:
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        return connection.getsockname()[1]
