"""What a run finds of itself in its folder when it begins."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from gsa.files import printable_lines
from gsa.report import read_report
from gsa.runner._config_file import loaded, read_config
from gsa.runner._dotted import flat, is_below, values_of
from gsa.runner._older import as_meant
from gsa.runner._quoted import folder_keys, override
from gsa.runner._ranks import is_first_rank
from gsa.runner._same_run import OF_THE_PLACE, OF_THE_TRAINING, differing_keys
from gsa.runner._schema import ConfigError
from gsa.saved import newest_checkpoint, read_checkpoint

__all__ = ["finished_report", "is_of_its_words", "where_it_stands"]


def finished_report(config: DictConfig) -> dict[str, Any] | None:
    """The report of this very run, if ckpt_path=auto asks for it and it has ended before.

    One that ended early, with another trainer.max_time than it has now, goes on. A job that SLURM has started again, as
    submitit asks it to, goes on in the folder where it has begun, without being asked.

    Raises:
        ConfigError: the folder holds a run with another configuration, or one whose place this would take.
    """
    folder = Path(config.output_dir)
    is_again = int(os.environ.get("SLURM_RESTART_COUNT", 0)) > 0 and (folder / "config.yaml").exists()
    if is_again and config.train and config.ckpt_path is None:
        config.ckpt_path = "auto"
    if config.ckpt_path != "auto":
        _refuse_to_replace(folder, config)
    if config.ckpt_path != "auto" or not (folder / "config.yaml").exists():
        return None
    before, report, _ = _told(folder)
    if config.seed is None and (begun := before or _begun(folder)):  # the one that was drawn
        config.seed = begun.get("seed")
    if before is not None:
        _refuse_another_run(before, config, folder)
        if report is not None and before["trainer"].get("max_time") != config.trainer.get("max_time"):
            return report if report.get("epochs", 0) >= config.trainer.max_epochs else None
    return report


def is_of_its_words(folder: Path) -> bool:
    """Whether the run in the folder of a job is the one that Hydra has noted there.

    Hydra notes a job before it may be refused, so that the folder can hold another one, with its report.
    """
    noted, before = folder / ".hydra" / "config.yaml", _told(folder)[0]
    if before is None or not noted.exists():
        return True
    with suppress(OSError, ValueError, YAMLError, OmegaConfBaseException):  # damaged
        read = loaded(noted.read_bytes())
        config = OmegaConf.masked_copy(read, list(before))
        config.output_dir = config.logger = None  # which may ask Hydra, or a server
        if config.seed is None:
            config.seed = before["seed"]
        return not _of_another_run(before, config)
    return True


def where_it_stands(folder: Path, config: DictConfig) -> str | None:
    """The newest whole checkpoint of a run, if there is one; says which, and what is wrong with others.

    Raises:
        ConfigError: it is that of another configuration, or there are some and none is whole.
    """
    newest, damaged = newest_checkpoint(folder / "checkpoints")
    if newest is None and damaged:
        raise ConfigError(f"no checkpoint of the run in {folder} is whole; delete them to begin anew: {damaged}")
    if newest is not None:
        _refuse_another_run(_run_of(newest), config, folder)
    if is_first_rank():
        for message in [*damaged, *_told(folder)[2]]:
            print(f"passed over: {printable_lines(message)}")
        print(f"going on from {newest}" if newest else f"there is no checkpoint in {folder} yet: starting anew")
    return str(newest) if newest else None


def _refuse_to_replace(folder: Path, config: DictConfig) -> None:
    """A run goes on from a checkpoint of its own; a test may be made again, but not in the folder of a training."""
    begun = config.ckpt_path if config.train else None
    if begun is not None and Path(begun).resolve().is_relative_to(folder.resolve()):
        return
    reported = (folder / "report.json").exists() and (config.train or (_told(folder)[0] or {}).get("train", True))
    if reported or any((folder / "checkpoints").glob("*.ckpt")):
        advice = "ckpt_path=auto goes on with it, or choose" if config.train else "choose"
        raise ConfigError(f"{folder} holds a run already: {advice} another folder ({folder_keys()})")


def _told(folder: Path) -> tuple[dict[str, Any] | None, dict[str, Any] | None, list[str]]:
    """What a folder says of its run: configuration, report of one that has ended, and what is wrong with either."""
    before, report, damaged = None, None, []
    for name in ("config.yaml", "report.json"):
        if (folder / name).exists():
            try:
                if name == "config.yaml":
                    before = values_of(read_config(folder / name), resolve=False)
                else:
                    report = read_report(folder)
            except ValueError as error:
                damaged.append(str(error))
    return before, report if before is not None else None, damaged


def _begun(folder: Path) -> dict[str, Any] | None:
    """The configuration in the newest whole checkpoint of a run, if there is one."""
    newest, _ = newest_checkpoint(folder / "checkpoints")
    return _run_of(newest) if newest is not None else None


def _run_of(checkpoint: Path) -> dict[str, Any]:
    held = read_checkpoint(checkpoint).get("hyper_parameters")
    run = held.get("run") if isinstance(held, dict) else None
    if not isinstance(run, dict):
        raise ConfigError(f"{checkpoint} does not say which run it belongs to")
    return run


def _refuse_another_run(before: dict[str, Any], config: DictConfig, folder: Path) -> None:
    if differing := _of_another_run(before, config):
        there = flat(as_meant(before))
        told = ", ".join(f"{key} ({there[key]!r} there)" if key in there else key for key in differing)
        last = folder / "checkpoints" / "last.ckpt"
        may_go_on = last.exists() and not any(is_below(key, ("model", *OF_THE_TRAINING)) for key in differing)
        way_on = f", or go on with these in that run alone by {override('ckpt_path', last)}" if may_go_on else ""
        raise ConfigError(
            f"ckpt_path=auto goes on with the run in {folder}, but that one has other values of "
            f"{told}: give those of its config.yaml, or choose another folder ({folder_keys()}){way_on}"
        )


def _of_another_run(before: dict[str, Any], config: DictConfig) -> list[str]:
    """Keys that make another run of it."""
    differing = differing_keys(as_meant(before), as_meant(values_of(config)))
    return [key for key in differing if not is_below(key, OF_THE_PLACE)]
