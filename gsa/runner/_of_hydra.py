"""What a command asks of Hydra that no run or sweep could mean."""

import os
from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from gsa.runner._folder import refuse_among_classes
from gsa.runner._quoted import override
from gsa.runner._schema import ConfigError
from gsa.runner._search import refuse_bad_search, refuse_lone_search
from gsa.runner._wandb import is_of_wandb

__all__ = ["refuse_bad_run", "refuse_bad_sweep"]


def refuse_bad_run(of_hydra: DictConfig) -> None:
    """Look at Hydra's own part of the configuration of a run.

    Raises:
        ConfigError: another working directory, a second folder, or a search without a sweep.
    """
    _refuse_moving(of_hydra.job.chdir)
    _refuse_two_folders(of_hydra.overrides.task)
    refuse_lone_search(of_hydra.runtime.choices.get("search"))


def refuse_bad_sweep(config: DictConfig) -> None:
    """Look at the configuration of a sweep, whose jobs are composed one by one later.

    Raises:
        ConfigError: another working directory, a second folder, jobs that could not be told apart, or that would all
            be refused, or be one another.
    """
    _refuse_moving(config.hydra.job.chdir)
    _refuse_two_folders(config.hydra.overrides.task)
    _refuse_unnoted(config)
    if isinstance(config.get("data"), DictConfig) and not OmegaConf.is_missing(config.data, "_target_"):
        refuse_among_classes(config.data, config.hydra.sweep.dir)
    _refuse_one_checkpoint(config)
    _refuse_one_id(config)
    refuse_bad_search(config)


def _refuse_moving(moves: bool | None) -> None:
    if moves:
        raise ConfigError(
            "hydra.job.chdir must be false, because paths of data and modules are relative to where the command is "
            "given, but got true; a run writes into its own folder all the same"
        )


def _refuse_two_folders(words: Sequence[str]) -> None:
    """One of Hydra's, with its notes and the log, and another, which all jobs of a sweep would share."""
    if given := [word for word in words if word.lstrip("+").startswith("output_dir=")]:
        raise ConfigError(
            f"output_dir is Hydra's folder on the command line: set hydra.run.dir, or hydra.sweep.dir for a sweep, but "
            f"got {given[0]}"
        )


def _refuse_unnoted(config: DictConfig) -> None:
    """The jobs of a sweep are told apart by what Hydra notes of them; processes that Lightning starts note nothing."""
    if config.hydra.output_subdir is None and "LOCAL_RANK" not in os.environ:
        raise ConfigError("a sweep needs hydra.output_subdir, from which its table is made, but got null")


def _refuse_one_checkpoint(config: DictConfig) -> None:
    """Jobs that all went on from one file would end as the run that it is of, whatever they were to try."""
    if config.train is True and config.ckpt_path not in (None, "auto"):
        raise ConfigError(
            "in a sweep every job goes on from a checkpoint of its own: expected ckpt_path=auto with the folder of the "
            f"sweep (hydra.sweep.dir), but got {override('ckpt_path', Path(config.ckpt_path))}"
        )


def _refuse_one_id(config: DictConfig) -> None:
    """All jobs would write into one run on wandb."""
    logs = any(is_of_wandb(node) for node in (config.get("logger") or {}).values())
    if logs and "WANDB_RUN_ID" in os.environ:
        raise ConfigError("WANDB_RUN_ID names one run on wandb, but a sweep has one for each of its jobs: unset it")
