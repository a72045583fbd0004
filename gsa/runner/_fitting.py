"""Whether a run may go on from a checkpoint, or test it."""

import warnings
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from torch import nn

from gsa._remembered import groups_within
from gsa.files import printable
from gsa.runner._build import Run
from gsa.runner._dotted import flat, is_below, values_of
from gsa.runner._older import as_meant, network_as_meant
from gsa.runner._quoted import folder_keys
from gsa.runner._same_run import OF_CALLBACKS, OF_THE_MACHINE, OF_THE_TRAINING, differing_keys
from gsa.saved import read_checkpoint

__all__ = ["look_for_best", "refuse_other_format", "refuse_other_training", "refuse_unfit"]

_SHOWN = 5  # names of a message


def refuse_unfit(checkpoint: dict[str, Any], run: Run) -> None:
    """Compare a checkpoint with the run that is to go on from it, or to test it, as far as it tells.

    Args:
        checkpoint: at the `ckpt_path` of the run.
        run: whose data have been set up.

    Raises:
        ValueError: another network, other groups or classes; where the run goes on, another training or other pictures;
            in a test, pictures of another format.
    """
    config, data, path = run.config, run.data, run.config.ckpt_path
    _refuse_other_network(checkpoint, config, () if config.train else getattr(run.network, "training_only", ()))
    _refuse_other_groups(checkpoint, path, run.network)
    _refuse_other_classes(checkpoint, path, list(data.classes))
    if config.train:
        refuse_other_training(checkpoint, config)
        _refuse_other_pictures(checkpoint, path, data)
    else:
        refuse_other_format(checkpoint, path, data.picture_format(), config.data)
        _refuse_other_fold(checkpoint, path, config.data)
        if not data.for_test_only:
            _warn_of_another_test(checkpoint, path, data)


def look_for_best(checkpoint: dict[str, Any], run: Run) -> None:
    """Whether the best epoch of before stands beside a checkpoint that a run is about to go on from.

    Raises:
        ValueError: it does, and is damaged. Where it is missing, a warning says which of the epochs can be chosen.
    """
    if run.best is None:
        return
    state = checkpoint.get("callbacks", {}).get(run.best.state_key, {})
    if not (remembered := state.get("best_model_path")):
        return
    path = Path(run.config.ckpt_path)
    best = path.with_name(Path(remembered).name)
    score = f"{run.best.monitor} {float(state['best_model_score']):.4f}"
    told = f"the best epoch that {path} remembers ({score})"
    try:
        read_checkpoint(best)
    except FileNotFoundError:
        warnings.warn(f"{told} is not in {best}: of the epochs from here on, the best is chosen", stacklevel=2)
    except ValueError as error:
        raise ValueError(
            f"{told} would be tested at the end, but: {error}; put it back, or delete it to choose among the epochs "
            "from here on"
        ) from error


def _refuse_other_network(checkpoint: dict[str, Any], config: DictConfig, training_only: Container[str]) -> None:
    """Keywords of the network that matter in training only, such as dropouts, may differ in a test."""
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


def _refuse_other_groups(checkpoint: dict[str, Any], path: str, network: nn.Module) -> None:
    """The code of a network may have changed, and with it the group of a layer."""
    there, here = checkpoint.get("groups", {}), groups_within(network)  # those of earlier versions do not say
    for name in there:  # in the order of the network
        if name in here and there[name] != here[name]:
            raise ValueError(
                f"the checkpoint {path} has weights of {there[name]} in {name}, but this network is of {here[name]} "
                "there: expected the same groups"
            )


def _refuse_other_classes(checkpoint: dict[str, Any], path: str, here: list[str]) -> None:
    pictures = checkpoint.get("pictures")
    there = pictures.get("classes") if isinstance(pictures, dict) else None
    if not isinstance(there, list) or there == here:
        return
    found = [f"{_named(there, here)} there alone", f"{_named(here, there)} here alone"]
    differing = "they have another order" if set(there) == set(here) else ", ".join(found)
    empty = "an empty folder (in a table, a line without a file) for each of them"
    remedy = f"; test it with {empty}, and data.test_share=1" if {*here} < {*there} else ""
    raise ValueError(f"the checkpoint {path} was trained on other classes than those of the data: {differing}{remedy}")


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
        if is_below(key, OF_THE_TRAINING) and not is_below(key, OF_THE_MACHINE)
        if key not in OF_CALLBACKS or None not in (before.get(key), now.get(key))
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
    if 0 <= most < done:
        raise ValueError(
            f"trainer.max_steps must be at least the {done} steps that the checkpoint {config.ckpt_path} has taken, "
            f"but got {most}; train=false tests it"
        )
    length = before.get("trainer.max_epochs")
    if length != config.trainer.max_epochs and not config.scheduler._target_.endswith(".constant"):
        ended = ", at whose end it is zero" if config.scheduler._target_.endswith(".warmup_cosine") else ""
        warnings.warn(
            f"the learning rate goes on along the schedule of the {length} epochs of before{ended}", stacklevel=2
        )


def _refuse_other_pictures(checkpoint: dict[str, Any], path: str, data: Any) -> None:
    if differing := _differing_parts(checkpoint, data):
        raise ValueError(
            f"a run goes on with the pictures that it began with, but since the checkpoint {path} files of the parts "
            f"{', '.join(differing)} were added, removed, renamed, replaced or given other labels (or divided as "
            "earlier versions did: folders without val or with copies until 26 November 2026, with data.groups until "
            "27 November, their train_pictures until 29 November): put them back, or begin in another folder "
            f"({folder_keys()})"
        )


def refuse_other_format(checkpoint: dict[str, Any], path: str, here: Mapping[str, Any], keys: Container[str]) -> None:
    """Compare how a checkpoint was shown its pictures, where it says so, with how those of the data are read.

    Args:
        checkpoint, path: of the trained network, which sees other details in pictures of another size.
        here: the format of the data's pictures.
        keys: that the configuration of the data has.

    Raises:
        ValueError: another side, other channels, or another white.
    """
    there = checkpoint.get("pictures")
    if not isinstance(there, dict) or "image_size" not in there:
        return
    if (side := there["image_size"]) != (found := here["image_size"]):
        differs = f"data.size is {found}: say data.size={side}" if "size" in keys else f"those of the data have {found}"
        raise ValueError(f"the checkpoint {path} was trained on pictures of {side} pixels, but {differs}")
    asked = _as_asked(here)
    for key, value in _as_asked(there).items():
        if value != asked[key]:
            say = f": say data.{key}={value}" if key in keys else ", and the data have no such key"
            raise ValueError(
                f"the checkpoint {path} was trained with data.{key}={value}, but it is {asked[key]} here{say}"
            )
    if there["in_channels"] != here["in_channels"]:
        raise ValueError(
            f"the checkpoint {path} was trained on pictures of {there['in_channels']} channels, but those of the data "
            f"have {here['in_channels']}"
        )


def _refuse_other_fold(checkpoint: dict[str, Any], path: str, here: Mapping[str, Any]) -> None:
    """The other folds are what it was trained on."""
    there = as_meant(checkpoint.get("hyper_parameters", {}).get("run", {}))["data"]
    for key in ("fold", "split_seed"):
        if here.get("fold") is not None and there.get(key) != here.get(key):
            raise ValueError(
                f"a network is tested on its own fold, as it was trained on the others, but the checkpoint {path} was "
                f"trained with data.{key}={there.get(key)}, not {here.get(key)}: leave data.fold out, and say "
                "data.test_share=1, to test it on all pictures of another folder"
            )


def _as_asked(pictures: Mapping[str, Any]) -> dict[str, str]:
    """How files are read, as it is said on the command line."""
    channels = "pages" if pictures.get("pages") else "grey" if pictures["in_channels"] == 1 else "colour"
    white, framing = pictures.get("white"), "whole" if pictures.get("whole") else "centre"
    return {"channels": channels, "framing": framing, "white": "null" if white is None else str(white).replace(" ", "")}


def _warn_of_another_test(checkpoint: dict[str, Any], path: str, data: Any) -> None:
    """Where files have changed since, the test part may hold what was trained on."""
    if "test" in _differing_parts(checkpoint, data):
        warnings.warn(
            f"the files of the test part are others than when {path} was trained: of folders that were divided anew, "
            "some may have been trained on",
            stacklevel=2,
        )


def _differing_parts(checkpoint: dict[str, Any], data: Any) -> list[str]:
    """Parts that both tell of, and not the same; of a checkpoint that tells of none, those that are drawn anew."""
    there = checkpoint.get("digests")
    if there is None:  # until 23 November 2026
        return list(data.redrawn)
    differing = [name.partition(" ")[0] for name in there if there[name] != data.digests.get(name)]
    return list(dict.fromkeys(differing))


def _named(names: Sequence[str], others: Sequence[str]) -> str:
    """The names that others lack."""
    alone = [repr(printable(str(name))) for name in names if name not in others]
    more = f" and {len(alone) - _SHOWN} more" if len(alone) > _SHOWN else ""
    return ", ".join(alone[:_SHOWN]) + more or "none"
