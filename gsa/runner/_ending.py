"""What is said when a run ends early: why, where its log has the rest, and how it goes on."""

import logging
import multiprocessing
import os
import shlex
import signal
import sys
from contextlib import suppress
from itertools import dropwhile
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from gsa._origin import comes_through
from gsa.runner._folder import TakenAway
from gsa.runner._quoted import override
from gsa.runner._search import draws_again, is_search
from gsa.runner._words import of_a_run

__all__ = ["Failed", "is_of_the_surroundings", "queue_again_if_told", "way_on", "written_down"]


class Failed(Exception):
    """What ended a run, in words; not a mistake of the program."""


def is_of_the_surroundings(error: Exception) -> bool:
    """Whether an error is none of the program, and a line says enough of it."""
    from gsa.data import BadBatch
    from gsa.runner._processes import RankFailed
    from gsa.training import NotFinite

    outside = (OSError, MemoryError, ModuleNotFoundError, BadBatch, NotFinite, RankFailed)
    is_lost_worker = isinstance(error, RuntimeError) and str(error).startswith("DataLoader worker")
    return isinstance(error, outside) or is_lost_worker or _lacks_compiler(error)


def written_down(error: Exception) -> str:
    """What an error says, and which log has the rest, into which it is written here, and not onto the screen."""
    record = logging.LogRecord(__name__, logging.ERROR, __file__, 0, "this run has failed", None, sys.exc_info())
    told = _told(error)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.FileHandler) and not isinstance(error, TakenAway):
            with suppress(OSError):  # its folder is gone, or the disk is full
                with open(handler.baseFilename, "a", encoding="utf-8") as log:
                    log.write(f"{handler.format(record)}\n")
                told += f"\nthe log has the rest: {handler.baseFilename}"
    return told


def way_on(last: Path, config: DictConfig, number: int) -> str:
    """How what was stopped goes on: by the same command, with the folder of a sweep, where every job has its own file.

    With nothing where its own words name the folder, or SLURM gives them again in the same job, which names it. A trial
    of a search that would draw other values goes on by itself.
    """
    of_hydra = HydraConfig.get()
    is_sweep = of_hydra.mode is RunMode.MULTIRUN
    if is_sweep and is_search(of_hydra) and not draws_again(of_hydra.sweeper):
        words = [*of_a_run(of_hydra.overrides.task), *([] if config.test else ["test=false"])]
        command = f"python train.py {shlex.join(words)} {override('ckpt_path', last)}"
        return f"{command}  finishes this trial; a search begins anew"
    key = "hydra.sweep.dir" if is_sweep else "hydra.run.dir"
    is_again = number == signal.SIGUSR1 and "SLURM_JOB_ID" in os.environ
    has_folder = is_again or any(word.startswith(f"{key}=") for word in of_hydra.overrides.hydra)
    if config.ckpt_path == "auto" and has_folder:
        return "the same command goes on"
    added = f"{override(key, Path(of_hydra.sweep.dir))} ckpt_path=auto" if is_sweep else override("ckpt_path", last)
    return f"the same command goes on with  {added}"


def queue_again_if_told(number: int, ckpt_path: str | None) -> None:
    """A job of SLURM that SIGUSR1 has told that its time is up, where it goes on by itself; a sweep's leader asks."""
    is_told = number == signal.SIGUSR1 and ckpt_path == "auto" and "SLURM_JOB_ID" in os.environ
    if is_told and multiprocessing.parent_process() is None:
        from gsa.runner._slurm import queue_again

        print(queue_again(), file=sys.stderr)


def _lacks_compiler(error: Exception) -> bool:
    return str(error).startswith("InvalidCxxCompiler")  # within what torch raises of all that it cannot compile


def _told(error: Exception) -> str:
    """Of an error in a worker that loads data, without the traceback that torch makes part of it."""
    if _lacks_compiler(error):
        return "compile=true needs a C++ compiler, but none works (g++, or CXX): install one, or say compile=false"
    if comes_through("wandb", error):
        return f"wandb, which this run is logged with, has failed: {error or type(error).__name__}"
    _, is_of_worker, trace = str(error).partition("\nOriginal Traceback")
    if not is_of_worker:
        return str(error)
    last = trace.rstrip().rpartition('\n  File "')[2].splitlines()[1:]  # its code, then what was raised, with its kind
    raised = "\n".join(dropwhile(lambda line: line.startswith(" "), last))
    return raised.partition(": ")[2] or raised
