"""A search for the best values, by Optuna, of which trials draw some: what none could find, or would find twice."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from gsa.files import one_line
from gsa.runner._dotted import is_below
from gsa.runner._folder import held
from gsa.runner._same_run import OF_THE_PLACE
from gsa.runner._schema import ConfigError

__all__ = ["alone_in", "draws_again", "has_jobs", "is_search", "refuse_bad_search", "refuse_lone_search"]

_OF_ANY_SEARCH = (*(key for key in OF_THE_PLACE if key != "objective"), "seed", "search", "hydra")


def is_search(of_hydra: Any) -> bool:
    """Whether Hydra is asked to search, in its own part of a configuration."""
    return str(of_hydra.sweeper.get("_target_", "")).endswith("OptunaSweeper")


def draws_again(sweeper: Any) -> bool:
    """Whether a search that is started again, in its own folder, draws the same values."""
    return OmegaConf.select(sweeper, "sampler.seed") is not None and sweeper.get("storage") is None


def has_jobs(folder: Path) -> bool:
    """Whether jobs of a sweep have begun in its folder."""
    return any(folder.rglob(".hydra/overrides.yaml"))


def refuse_lone_search(search: str | None) -> None:
    """Hydra asks a sweeper in sweeps alone: there would be one run, with the values of no trial, and no test.

    Raises:
        ConfigError: a search without -m.
    """
    if search is not None:
        raise ConfigError(f"search={search} needs -m: without it there are no trials, only one run")


def refuse_bad_search(config: DictConfig) -> None:
    """Look at the configuration of a sweep, if it is a search.

    Raises:
        ConfigError: a search for the worst, of no trials, by the test part or over divisions of the pictures; a second
            one in a folder; a study of other runs, or one that would be told the same trials again.
    """
    if not is_search(config.hydra):
        return
    is_one = _started(config)[1] == 1
    if not is_one and not (draws_again(config.hydra.sweeper) and config.ckpt_path == "auto"):
        raise ConfigError(
            "each of several processes leads the search: all draw the same with hydra.sweeper.sampler.seed, without "
            "hydra.sweeper.storage, and find trials that the others have begun with ckpt_path=auto"
        )
    _refuse_numbers(config.hydra.sweeper)
    _refuse_other_objective(config)
    _refuse_easiest_division(config)
    if is_one:  # else the trials of another process are there
        _refuse_second_search(config)
    if config.hydra.sweeper.get("storage") is not None:
        _refuse_study(config)


def alone_in(config: DictConfig) -> Any:
    """While inside, no other search works in the folder of this one, whose trials would draw other values.

    Raises:
        Busy: one does.
    """
    if not is_search(config.hydra) or _started(config)[0]:
        return nullcontext()
    folder = Path(config.hydra.sweep.dir)
    folder.mkdir(parents=True, exist_ok=True)
    return held(folder)


def _refuse_numbers(sweeper: Mapping[str, Any]) -> None:
    direction = sweeper.get("direction")
    direction = getattr(direction, "name", direction)
    if direction != "maximize":
        raise ConfigError(
            "a search looks for the largest accuracy: expected hydra.sweeper.direction=maximize, as search=optuna has, "
            f"but got {direction}"
        )
    for name in ("n_trials", "n_jobs"):
        if not (isinstance(value := sweeper.get(name, 1), int) and value >= 1):
            raise ConfigError(f"hydra.sweeper.{name} must be a positive integer, but got {value}")


def _refuse_second_search(config: DictConfig) -> None:
    """Trials would be refused one by one, in the folders of others: unless the same are drawn, which then go on."""
    folder, sweeper = Path(config.hydra.sweep.dir), config.hydra.sweeper
    if not has_jobs(folder):
        return
    if sweeper.get("storage") is not None:
        raise ConfigError(
            f"{folder} has jobs already: a search that is stored (hydra.sweeper.storage) goes on with others, in "
            "another folder (hydra.sweep.dir)"
        )
    if OmegaConf.select(sweeper, "sampler.seed") is None:
        raise ConfigError(
            f"a search draws other values than the one in {folder}: choose another folder (hydra.sweep.dir); one with "
            "hydra.sweeper.sampler.seed draws the same again, and goes on with ckpt_path=auto"
        )
    if config.ckpt_path != "auto":
        raise ConfigError(
            f"{folder} has jobs already: ckpt_path=auto goes on with those of this search, or choose another folder "
            "(hydra.sweep.dir)"
        )


def _refuse_easiest_division(config: DictConfig) -> None:
    """A search over folds would find the one whose validation part is the easiest."""
    params = [f"{key}={value}" for key, value in (config.hydra.sweeper.get("params") or {}).items()]
    for key, value in _drawn([*config.hydra.overrides.task, *params]):
        if key in ("data.fold", "data.split_seed"):
            raise ConfigError(
                f"trials of a search are compared on one division of the pictures: expected one {key}, but got {value}"
            )


def _refuse_other_objective(config: DictConfig) -> None:
    """Epochs and trials are judged alike, or the best trial is not the one that the table tells to test."""
    monitor, objective = OmegaConf.select(config, "callbacks.best.monitor"), config.objective
    if not objective.startswith("val/"):
        raise ConfigError(f"trials are judged on the validation part: expected objective=val/…, but got {objective}")
    if objective != (monitor or "val/accuracy"):
        raise ConfigError(
            f"a search needs callbacks.best.monitor={objective}, by which it judges (objective), but got {monitor}"
        )


def _refuse_study(config: DictConfig) -> None:
    """A study that is stored learns from all of its trials: they have to be of the same runs, and others each time."""
    import optuna

    if config.hydra.sweeper.get("study_name") is None:
        raise ConfigError(
            "a search that is stored goes on by its name: expected hydra.sweeper.study_name, but got null"
        )
    sweeper, words = config.hydra.sweeper, _fixed_words(config.hydra.overrides.task)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # Hydra's sweeper says it again
    try:
        study = optuna.create_study(
            study_name=sweeper.study_name, storage=sweeper.storage, direction="maximize", load_if_exists=True
        )
        known, count = study.user_attrs.get("words"), len(study.trials)
        if known is None:
            study.set_user_attr("words", words)
    except Exception as error:  # of a database, of many kinds
        raise ConfigError(f"hydra.sweeper.storage={sweeper.storage} cannot be used: {one_line(error)}") from error
    finally:
        optuna.logging.set_verbosity(before)
    if known is not None and known != words:
        there, here = (" ".join(word for word in one if word not in other) or "none of those" for one, other in
                       ((known, words), (words, known)))  # fmt: skip
        raise ConfigError(
            f"the study {sweeper.study_name} in {sweeper.storage} has trials of other runs ({there} there, {here} "
            "here): choose another hydra.sweeper.study_name"
        )
    if count and OmegaConf.select(sweeper, "sampler.seed") is not None:
        raise ConfigError(
            f"the study {sweeper.study_name} in {sweeper.storage} has {count} trials, which a search with "
            "hydra.sweeper.sampler.seed would draw again: go on without the seed"
        )


def _fixed_words(words: list[str]) -> list[str]:
    """Words that all trials have in common, and that make them other runs than those of another search."""
    drawn = {key for key, _ in _drawn(words)}
    keys = [word.lstrip("+~").partition("=")[0] for word in words]
    return sorted(
        word for word, key in zip(words, keys, strict=True) if key not in drawn and not is_below(key, _OF_ANY_SEARCH)
    )


def _drawn(words: list[str]) -> list[tuple[str, str]]:
    """Key and value of the words that give a choice."""
    parsed = OverridesParser.create().parse_overrides(words)
    drawn = [word for word in parsed if word.is_sweep_override()]
    return [(word.get_key_element().lstrip("+~"), word.get_value_string()) for word in drawn]


def _started(config: DictConfig) -> tuple[int, int]:
    """Which of how many processes of one run this is that torchrun or srun have started: each leads the whole sweep."""
    if OmegaConf.select(config, "trainer.strategy") in (None, "auto"):  # each trains a run of its own
        return 0, 1
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if "SLURM_STEP_NUM_TASKS" in os.environ:
        return int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_STEP_NUM_TASKS"])
    return 0, 1
