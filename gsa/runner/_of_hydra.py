"""What a command asks of Hydra that no run or sweep could mean."""

import os
from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from gsa.runner._folder import refuse_among_classes
from gsa.runner._quoted import override
from gsa.runner._schema import ConfigError

__all__ = ["has_jobs", "refuse_bad_run", "refuse_bad_sweep"]


def refuse_bad_run(of_hydra: DictConfig) -> None:
    """Look at Hydra's own part of the configuration of a run.

    Raises:
        ConfigError: another working directory, a second folder, or a search without a sweep.
    """
    _refuse_moving(of_hydra.job.chdir)
    _refuse_two_folders(of_hydra.overrides.task)
    _refuse_lone_search(of_hydra.runtime.choices.get("search"))


def refuse_bad_sweep(config: DictConfig) -> None:
    """Look at the configuration of a sweep, whose jobs are composed one by one later.

    Raises:
        ConfigError: another working directory, a second folder, jobs that could not be told apart, or that would all
            be refused, or be one another.
    """
    _refuse_moving(config.hydra.job.chdir)
    _refuse_two_folders(config.hydra.overrides.task)
    _refuse_unnoted(config)
    _refuse_second_search(config)
    _refuse_easiest_division(config)
    _refuse_other_objective(config)
    if isinstance(config.get("data"), DictConfig) and not OmegaConf.is_missing(config.data, "_target_"):
        refuse_among_classes(config.data, config.hydra.sweep.dir)
    _refuse_one_checkpoint(config)


def has_jobs(folder: Path) -> bool:
    """Whether jobs of a sweep have begun in its folder."""
    return any(folder.rglob(".hydra/overrides.yaml"))


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


def _refuse_lone_search(search: str | None) -> None:
    """Hydra asks a sweeper in sweeps alone: there would be one run, with the values of no trial, and no test."""
    if search is not None:
        raise ConfigError(f"search={search} needs -m: without it there are no trials, only one run")


def _refuse_unnoted(config: DictConfig) -> None:
    """The jobs of a sweep are told apart by what Hydra notes of them; processes that Lightning starts note nothing."""
    if config.hydra.output_subdir is None and "LOCAL_RANK" not in os.environ:
        raise ConfigError("a sweep needs hydra.output_subdir, from which its table is made, but got null")


def _refuse_second_search(config: DictConfig) -> None:
    """A search draws other values than the one before it, one that is stored too: jobs would be refused one by one."""
    folder = Path(config.hydra.sweep.dir)
    draws_anew = OmegaConf.select(config.hydra.sweeper, "sampler.seed") is None
    if _is_search(config) and draws_anew and config.ckpt_path == "auto" and has_jobs(folder):
        raise ConfigError(
            f"ckpt_path=auto goes on with jobs, but a search draws other values than the one in {folder}: choose "
            "another folder (hydra.sweep.dir); one with hydra.sweeper.sampler.seed draws the same again"
        )


def _refuse_easiest_division(config: DictConfig) -> None:
    """A search over folds would find the one whose validation part is the easiest."""
    for word in config.hydra.overrides.task if _is_search(config) else ():
        key, _, value = word.lstrip("+").partition("=")
        if key in ("data.fold", "data.split_seed") and ("," in value or "(" in value):
            raise ConfigError(
                f"trials of a search are compared on one division of the pictures: expected one {key}, but got {value}"
            )


def _refuse_other_objective(config: DictConfig) -> None:
    """Epochs and trials are judged alike, or the best trial is not the one that the table tells to test."""
    monitor, objective = OmegaConf.select(config, "callbacks.best.monitor"), config.objective
    if _is_search(config) and monitor is not None and objective.startswith("val/") and objective != monitor:
        raise ConfigError(
            f"a search needs callbacks.best.monitor={objective}, by which it judges (objective), but got {monitor}"
        )


def _is_search(config: DictConfig) -> bool:
    return str(config.hydra.sweeper.get("_target_", "")).endswith("OptunaSweeper")


def _refuse_one_checkpoint(config: DictConfig) -> None:
    """Jobs that all went on from one file would end as the run that it is of, whatever they were to try."""
    if config.train is True and config.ckpt_path not in (None, "auto"):
        raise ConfigError(
            "in a sweep every job goes on from a checkpoint of its own: expected ckpt_path=auto with the folder of the "
            f"sweep (hydra.sweep.dir), but got {override('ckpt_path', Path(config.ckpt_path))}"
        )
