"""Warnings in a line each, but for those that a user can do nothing about, and logs that say no more than is asked."""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = ["at_levels", "quiet"]

_KNOWN = (
    "The '.*_dataloader' does not have many workers",  # a choice: see num_workers
    "The number of training batches",  # fewer than log_every_n_steps
    ".*LeafSpec.*deprecated",
    "The `?srun`? command is available",
    "Experiment logs directory .* exists",  # a resumed run goes on in its own folder
    "Checkpoint directory .* exists",
    "You requested to overfit but enabled (train|val) dataloader shuffling",
    "Image size .* exceeds limit of .* pixels, could be decompression bomb",  # Pillow's; ours refuses at 100 million
    "You're resuming from a checkpoint that ended before the epoch ended",
)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the known ones out, everything else in, without the lines of the program that warn."""
    tips = _Tips()
    logs = [logging.getLogger(f"lightning.pytorch.{name}") for name in ("utilities.rank_zero", "accelerators.cuda")]
    for log in logs:
        log.addFilter(tips)
    printing = [logging.getLogger(name) for name in ("lightning", "lightning.pytorch")]
    handlers = [own.handlers for own in printing]
    if logging.getLogger().handlers:  # Hydra's print it, too
        for own in printing:
            own.handlers = []
    shown, warnings.formatwarning = warnings.formatwarning, _in_a_line
    try:
        with warnings.catch_warnings():
            for message in _KNOWN:
                warnings.filterwarnings("ignore", message)
            yield
    finally:
        for log in logs:
            log.removeFilter(tips)
        for own, before in zip(printing, handlers, strict=True):
            own.handlers = before
        warnings.formatwarning = shown


@contextmanager
def at_levels(levels: Mapping[str, int]) -> Iterator[None]:
    """Logs by name at other levels, while inside."""
    logs = [logging.getLogger(name) for name in levels]
    before = [log.level for log in logs]
    for log, level in zip(logs, levels.values(), strict=True):
        log.setLevel(level)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


def _in_a_line(message: Warning | str, *_: Any, **__: Any) -> str:
    return f"warning: {message}\n"


class _Tips(logging.Filter):
    """Advertisements, which device it is, and that a run has come to its end."""

    _words = ("litlogger", "💡", "`Trainer.fit` stopped: `max_", "that has Tensor Cores", "LOCAL_RANK: ")

    def filter(self, record: logging.LogRecord) -> bool:
        return not any(word in record.getMessage() for word in self._words)
