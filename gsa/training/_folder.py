"""The folder of a run: what stands in it when the run begins, and whether it may go on from there."""

import json
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from gsa.training._checkpoints import newest_checkpoint
from gsa.training._config import ConfigError

__all__ = ["chosen_metrics", "finished_report", "refuse_other_network", "where_it_stands", "write_config"]

_OF_THE_PLACE = ("output_dir", "ckpt_path")  # not of the run itself
_OF_TRAINING = ("attention_dropout", "value_dropout", "input_dropout", "dropout", "pool_dropout")


def write_config(resolved: str, folder: Path) -> None:
    """config.yaml, the first thing written.

    Raises:
        ConfigError: a folder that cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(resolved)
    except OSError as error:
        raise ConfigError(f"output_dir must be a folder that can be written, but {folder} is not: {error}") from error


def finished_report(config: DictConfig, folder: Path) -> dict[str, Any] | None:
    """The report of this very run, if it has ended before.

    Raises:
        ConfigError: the folder holds a run with another configuration.
    """
    if not (folder / "config.yaml").exists():
        return None
    before = yaml.safe_load((folder / "config.yaml").read_text())
    if config.seed is None:  # the one that was drawn
        config.seed = before["seed"]
    now = OmegaConf.to_container(config, resolve=True)
    differing = sorted(
        key for key in _flat(before) | _flat(now) if _flat(before).get(key, ...) != _flat(now).get(key, ...)
    )
    differing = [key for key in differing if key not in _OF_THE_PLACE]
    if differing:
        raise ConfigError(
            f"ckpt_path=auto goes on with the run in {folder}, but that one has other values of "
            f"{', '.join(differing)}: choose another folder (hydra.run.dir, or hydra.sweep.dir for a sweep)"
        )
    report = folder / "report.json"
    return json.loads(report.read_text()) if report.exists() else None


def chosen_metrics(report: dict[str, Any]) -> dict[str, float]:
    """What `train` returns, from the report of a finished run."""
    found = {f"{part}/accuracy": report[f"{part}_accuracy"] for part in ("val", "test")}
    return {name: value for name, value in found.items() if value is not None}


def where_it_stands(folder: Path) -> str | None:
    """The newest whole checkpoint of a run, if there is one; says which, and what is wrong with others."""
    newest, damaged = newest_checkpoint(folder / "checkpoints")
    for message in damaged:
        print(f"passed over: {message}")
    print(f"going on from {newest}" if newest else f"there is no checkpoint in {folder} yet: starting anew")
    return str(newest) if newest else None


def refuse_other_network(checkpoint: dict[str, Any], config: DictConfig) -> None:
    """Compare the network of a checkpoint with the configured one.

    Raises:
        ValueError: naming what differs.
    """
    there = checkpoint.get("hyper_parameters", {}).get("run", {}).get("model")
    if there is None:
        return
    here = OmegaConf.to_container(config.model, resolve=True)
    differing = [
        f"{key} ({there.get(key)!r} there, {here.get(key)!r} here)"
        for key in sorted(there.keys() | here.keys())
        if key not in _OF_TRAINING and there.get(key) != here.get(key)
    ]
    if differing:
        raise ValueError(
            f"the checkpoint {config.ckpt_path} holds another network; expected the same model, but these differ: "
            f"{', '.join(differing)}"
        )


def _flat(node: Any, prefix: str = "") -> dict[str, Any]:
    """Nested values under dotted keys."""
    if not isinstance(node, dict) or not node:
        return {prefix: node}
    parts = (_flat(value, f"{prefix}.{key}" if prefix else str(key)) for key, value in node.items())
    return {name: value for part in parts for name, value in part.items()}
