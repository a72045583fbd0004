"""Limits that only the data can judge: an epoch has a batch at least, and a run ends with one."""

import math
from typing import Any

from gsa.runner._build import Run
from gsa.runner._ranks import check_batch_size
from gsa.runner._schema import ConfigError

__all__ = ["refuse_bad_lengths"]


def refuse_bad_lengths(run: Run) -> None:
    """Look at the trainer's limits, with data that have been read.

    Raises:
        ConfigError: batches that cannot be shared out among the processes; a share of the batches of a part that is
            less than one batch; fewer pictures for validation, or to be tested, than processes; a limit of steps within
            an epoch, at whose end nothing would be validated.
    """
    config = run.config
    if config.train:
        check_batch_size(run.trainer, run.data.batch_size)
    trainer: Any = run.trainer  # which does not declare all of its attributes
    parts = {"train": config.train, "val": not run.data.for_test_only, "test": config.test}
    for part in (part for part, is_used in parts.items() if is_used):
        limit, loader = getattr(trainer, f"limit_{part}_batches"), getattr(run.data, f"{part}_dataloader")
        if isinstance(limit, float) and int(limit * (batches := len(loader()))) < 1:
            raise ConfigError(
                f"trainer.limit_{part}_batches must leave a batch, but {limit} of {batches} are none; a whole number "
                "is one of batches"
            )
        if part != "train" and (pictures := len(run.data.parts[part])) < trainer.world_size:
            raise ConfigError(
                f"each of the {trainer.world_size} processes needs a picture of {part!r}, which has {pictures}"
            )
    if config.train and trainer.max_steps > 0 and not trainer.fast_dev_run:
        steps = math.ceil(run.data.batches_per_epoch(trainer) / trainer.accumulate_grad_batches)
        if trainer.max_steps % steps and trainer.max_steps < steps * trainer.max_epochs:
            raise ConfigError(
                f"trainer.max_steps must be a multiple of the {steps} steps of an epoch, at whose end weights are "
                f"chosen, but got {trainer.max_steps}"
            )
