"""What a run finds of itself when it begins, and whether it may go on from there."""

import os
import warnings
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import nn
from yaml import YAMLError

from gsa._remembered import groups_within
from gsa.report import read_report
from gsa.runner._config_file import read_config
from gsa.runner._dotted import flat, is_below, values_of
from gsa.runner._older import as_meant, network_as_meant
from gsa.runner._quoted import override
from gsa.runner._ranks import is_first_rank
from gsa.runner._same_run import OF_THE_MACHINE, OF_THE_PLACE, differing_keys
from gsa.runner._schema import ConfigError
from gsa.saved import newest_checkpoint, read_checkpoint

__all__ = [
    "chosen_metrics",
    "finished_report",
    "is_of_its_words",
    "refuse_other_groups",
    "refuse_other_network",
    "refuse_other_training",
    "where_it_stands",
]

_FOLDERS = "hydra.run.dir, or hydra.sweep.dir for a sweep"
_OF_THE_TRAINING = (
    "data",
    "optimizer",
    "scheduler",
    "seed",
    "ema",
    "label_smoothing",
    "mixup",
    "class_weights",
    "trainer.accumulate_grad_batches",
    "trainer.gradient_clip_algorithm",
    "trainer.gradient_clip_val",
    "trainer.limit_train_batches",
    "trainer.limit_val_batches",
    "trainer.overfit_batches",
)


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
            return report if report["epochs"] >= config.trainer.max_epochs else None
    return report


def is_of_its_words(folder: Path) -> bool:
    """Whether the run in the folder of a job is the one that Hydra has noted there.

    Hydra notes a job before it may be refused, so that the folder can hold another one, with its report.
    """
    noted, before = folder / ".hydra" / "config.yaml", _told(folder)[0]
    if before is None or not noted.exists():
        return True
    with suppress(OSError, ValueError, YAMLError, OmegaConfBaseException):  # damaged
        read: Any = OmegaConf.load(noted)
        config = OmegaConf.masked_copy(read, list(before))
        config.output_dir = config.logger = None  # which may ask Hydra, or a server
        if config.seed is None:
            config.seed = before["seed"]
        return not _of_another_run(before, config)
    return True


def chosen_metrics(report: dict[str, Any]) -> dict[str, float]:
    """What `train` returns, from the report of a finished run."""
    of = {"val/accuracy": "val_accuracy", "test/accuracy": "test_accuracy", "test/auroc": "test_auroc"}
    return {name: report[key] for name, key in of.items() if report.get(key) is not None}


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
            print(f"passed over: {message}")
        print(f"going on from {newest}" if newest else f"there is no checkpoint in {folder} yet: starting anew")
    return str(newest) if newest else None


def refuse_other_network(checkpoint: dict[str, Any], config: DictConfig, training_only: Collection[str] = ()) -> None:
    """Compare the network of a checkpoint with the configured one.

    Args:
        checkpoint: with the configuration it was written by.
        config: of this run.
        training_only: keywords of the network that matter in training only, such as dropouts; they may differ.

    Raises:
        ValueError: naming what differs.
    """
    there = checkpoint.get("hyper_parameters", {}).get("run", {}).get("model")
    if there is None:
        return
    there, here = network_as_meant(there), network_as_meant(values_of(config.model))
    differing = [
        f"{key} ({there.get(key)!r} there, {here.get(key)!r} here)"
        for key in sorted(there.keys() | here.keys())
        if key not in training_only and there.get(key) != here.get(key)
    ]
    if differing:
        raise ValueError(
            f"the checkpoint {config.ckpt_path} holds another network; expected the same model, but these differ: "
            f"{', '.join(differing)}"
        )


def refuse_other_groups(checkpoint: dict[str, Any], path: str, network: nn.Module) -> None:
    """Compare the groups of the weights in a checkpoint with those of a network, whose code may have changed.

    Raises:
        ValueError: naming a layer of another group.
    """
    there, here = checkpoint.get("groups", {}), groups_within(network)  # those of earlier versions do not say
    for name in there:  # in the order of the network
        if name in here and there[name] != here[name]:
            raise ValueError(
                f"the checkpoint {path} has weights of {there[name]} in {name}, but this network is of {here[name]} "
                "there: expected the same groups"
            )


def refuse_other_training(checkpoint: dict[str, Any], config: DictConfig) -> None:
    """Compare how a checkpoint was trained with how the configuration would go on; it may do so for longer.

    Raises:
        ValueError: naming what differs, or fewer epochs or steps than there are already.
    """
    there = checkpoint.get("hyper_parameters", {}).get("run")
    if there is None:
        return
    there, here = as_meant(there), as_meant(values_of(config))
    before, now = flat(there), flat(here)
    differing = [
        f"{key} ({before.get(key)!r} there, {now.get(key)!r} here)"
        for key in differing_keys(there, here)
        if is_below(key, _OF_THE_TRAINING) and not is_below(key, OF_THE_MACHINE)
    ]
    if differing:
        raise ValueError(
            f"a run goes on as it began, but the checkpoint {config.ckpt_path} was trained with other values: "
            f"{', '.join(differing)}; give those of its config.yaml"
        )
    begun = checkpoint.get("epoch", -1) + 1
    if begun > config.trainer.max_epochs:
        raise ValueError(
            f"trainer.max_epochs must be at least the {begun} epochs that the checkpoint {config.ckpt_path} has begun, "
            f"but got {config.trainer.max_epochs}; train=false tests it"
        )
    done, most = checkpoint.get("global_step", 0), config.trainer.get("max_steps", -1)
    if 0 <= most <= done:
        raise ValueError(
            f"trainer.max_steps must be more than the {done} steps that the checkpoint {config.ckpt_path} has taken, "
            f"but got {most}; train=false tests it"
        )
    length = before.get("trainer.max_epochs")
    if length != config.trainer.max_epochs and not config.scheduler._target_.endswith(".constant"):
        ended = ", at whose end it is zero" if config.scheduler._target_.endswith(".warmup_cosine") else ""
        warnings.warn(
            f"the learning rate goes on along the schedule of the {length} epochs of before{ended}", stacklevel=2
        )


def _refuse_to_replace(folder: Path, config: DictConfig) -> None:
    """A run goes on from a checkpoint of its own; a test may be made again, but not in the folder of a training."""
    begun = config.ckpt_path if config.train else None
    if begun is not None and Path(begun).resolve().is_relative_to(folder.resolve()):
        return
    reported = (folder / "report.json").exists() and (config.train or (_told(folder)[0] or {}).get("train", True))
    if reported or any((folder / "checkpoints").glob("*.ckpt")):
        advice = "ckpt_path=auto goes on with it, or choose" if config.train else "choose"
        raise ConfigError(f"{folder} holds a run already: {advice} another folder ({_FOLDERS})")


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
        may_go_on = last.exists() and not any(is_below(key, ("model", *_OF_THE_TRAINING)) for key in differing)
        way_on = f", or go on with these in that run alone by {override('ckpt_path', last)}" if may_go_on else ""
        raise ConfigError(
            f"ckpt_path=auto goes on with the run in {folder}, but that one has other values of "
            f"{told}: give those of its config.yaml, or choose another folder ({_FOLDERS}){way_on}"
        )


def _of_another_run(before: dict[str, Any], config: DictConfig) -> list[str]:
    """Keys that make another run of it."""
    differing = differing_keys(as_meant(before), as_meant(values_of(config)))
    return [key for key in differing if not is_below(key, OF_THE_PLACE)]
