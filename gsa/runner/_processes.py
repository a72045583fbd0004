"""Several processes of one run on one machine, by the library beneath torchrun.

`torch.distributed.elastic.multiprocessing` starts the processes, each in a session of its own, ends all of them when
one fails, and has each write what it died of. The rest of torchrun, an agent that meets those of other machines, is
left out, because it breaks promises that are kept here instead.

- A signal saves the step at hand. The agent sends it to all processes, takes the first that has stopped for a failure
  and ends the others; here rank 0 alone is told, and tells the others, and those that have saved end with code 0.
- No process is left. Those of an agent that is killed go on for ever; each of ours looks whether its parent lives.
- What the other ranks print is one file each, rank_<n>.log, which they open themselves: the library would make two.
- Jobs of a sweep follow one another in one process: the agent leaves its signal handlers and a variable behind.
"""

import contextlib
import logging
import os
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from omegaconf import DictConfig, OmegaConf
from torch.distributed import TCPStore
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, PContext, RunProcsResult, start_processes
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from gsa.runner._config_file import write_config
from gsa.runner._libraries import granted_cores
from gsa.runner._quiet import at_levels
from gsa.training import SaveOnSignal, Stopped

__all__ = ["RankFailed", "launch"]

# The library says of every process that it ends it; `RankFailed` says why.
_SILENT = {"torch.distributed.elastic.multiprocessing": logging.CRITICAL}
GRACE = 10  # seconds for a process to end by itself when another one has failed


class RankFailed(RuntimeError):
    """One of the processes of a run has failed, and all have ended."""


def launch(config: DictConfig, world: int) -> None:
    """Run a configuration in several processes on this machine, to its end.

    Rank 0 prints where this process does, the others into rank_<n>.log.

    Args:
        config: of the run, whose folder is there.
        world: number of processes.

    Raises:
        RankFailed: with the error of the rank that failed first.
        Stopped: by a signal to this process, or to one of the others.
    """
    folder = Path(config.output_dir)
    listener, before = SaveOnSignal(str(folder / "checkpoints"), config.ckpt_path), _written(folder / "report.json")
    listener.waits = True
    store = _meeting_point()
    with listener.listening(), at_levels(_SILENT), TemporaryDirectory() as apart:
        write_config(OmegaConf.to_yaml(config, resolve=True), Path(apart))
        processes = _start(folder, apart, world, store.port)
        try:
            result = _wait(processes, listener)
        except ValueError as error:  # of torch's, which reads what a process has written of its end
            raise RankFailed(
                f"a process has failed, and what it wrote of that in {apart} is cut short: is its disk full?"
            ) from error
        finally:
            processes.close(signal.SIGKILL)
        told = listener.received is not None
        failures = {} if result is None else result.failures
        if failures and not (told and (0 not in failures or not any(map(_error, failures.values())))):
            raise RankFailed(_explain(failures, folder))
    listener.stop_if_told()  # in the way of whoever waits for SIGUSR2
    if _written(folder / "report.json") == before:
        raise Stopped(signal.SIGTERM, listener.checkpoint)


def _meeting_point() -> TCPStore:
    """Where the processes meet; for this machine alone, as torch's own socket would hear the whole network."""
    bound = socket.create_server(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    return TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False, master_listen_fd=bound.detach())


def _written(report: Path) -> tuple[int, int] | None:
    """Which report there is, if any: a run that goes on has one of before."""
    return (report.stat().st_ino, report.stat().st_mtime_ns) if report.exists() else None


def _start(folder: Path, apart: str, world: int, port: int) -> PContext:
    # Modules are looked for where this process does, and not in the current folder first; Ctrl-C before a run listens
    # ends a process without a traceback.
    quietly = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)"
    begin = f"{quietly}; import sys; sys.path[:] = {[*map(str, sys.path)]!r}; from gsa.runner import rank; rank.run()"
    command = ("-P", "-c", begin, str(folder), str(Path(apart) / "config.yaml"), str(os.getpid()))
    wished = os.environ.get("OMP_NUM_THREADS")
    is_for_all = not wished or wished == granted_cores()
    same = {
        "OMP_NUM_THREADS": str(max(torch.get_num_threads() // world, 1)) if is_for_all else wished,
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(world),
        "GROUP_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "gsa",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    environments = {rank: same | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world)}
    arguments = dict.fromkeys(range(world), command)
    with ThreadPoolExecutor(1) as thread:  # where the library cannot set signal handlers of its own
        logs = DefaultLogsSpecs(log_dir=apart)
        start = thread.submit(start_processes, "rank", sys.executable, arguments, environments, logs)
    processes = start.result()
    processes.close = partial(processes.close, timeout=GRACE)  # by which the library ends those that have not failed
    return processes


def _wait(processes: PContext, listener: SaveOnSignal) -> RunProcsResult | None:
    """What has become of the processes; None where rank 0 has stopped alone, and the others wait for it."""
    first, told, since = processes.pids()[0], False, None
    while (result := processes.wait(0)) is None:
        if listener.received is not None and not told:
            told = True
            with contextlib.suppress(ProcessLookupError):  # has just ended
                os.kill(first, signal.SIGTERM if listener.received == signal.SIGUSR2 else listener.received)
        if told and since is None and not _is_running(first):
            since = time.monotonic()
        if since is not None and time.monotonic() - since > GRACE:
            return None
        time.sleep(0.1)
    return result


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _error(failure: ProcessFailure) -> dict | None:
    """What a process has written of its death; None for one that was killed."""
    return failure.message if isinstance(failure.message, dict) else None


def _reason(failure: ProcessFailure) -> str:
    if (error := _error(failure)) is not None:
        return error["message"]
    return f"ended by {failure.signal_name()}" if failure.exitcode < 0 else f"ended with code {failure.exitcode}"


def _explain(failures: dict[int, ProcessFailure], folder: Path) -> str:
    """The error of the rank that failed first, and why others did then, a line each.

    One that wrote nothing was killed, and is before others that fail at about the time when that was noticed, as they
    do when they have lost it; one that hangs is killed by the library, `GRACE` seconds after another has failed.
    """

    def moment(failure: ProcessFailure) -> float:
        return Path(failure.error_file).stat().st_mtime if _error(failure) else failure.timestamp - GRACE / 2

    (rank, first), *others = sorted(failures.items(), key=lambda item: moment(item[1]))
    lines = [f"rank {rank} has failed: {_reason(first)}"]
    if rank and (error := _error(first)):
        lines.append(error["extraInfo"]["py_callstack"].rstrip())
    lines += [f"then rank {other}: {_reason(failure)}" for other, failure in others]
    return "\n".join([*lines, f"what the ranks other than 0 have printed: {folder}/rank_<n>.log"])
