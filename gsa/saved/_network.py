"""A trained network: of a run, of one of its checkpoints, or of an export."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from gsa.models import (
    Network,
    PictureFormat,
    create_model,
    is_export,
    list_pretrained,
    pretrained_folder,
    read_export,
)
from gsa.saved._checkpoint import read_checkpoint

__all__ = ["Saved", "load", "read"]


@dataclass(frozen=True)
class Saved:
    """A trained network, the keywords of `create_model` it was built with, and the pictures it knows."""

    network: Network
    model: dict[str, Any]
    pictures: PictureFormat


def load(path: str | os.PathLike[str]) -> Network:
    """A trained network in eval mode; it takes pictures as its `pictures.normalise` makes them.

    Args:
        path: folder of a run (its best weights), a checkpoint, or a folder written by `export`; or the name of a
            network whose trained weights come with the package.

    Raises:
        FileNotFoundError: nothing of the kind is there.
        ValueError: a damaged file, one that could run code, or a network that `gsa.create_model` does not build.
    """
    return read(path).network


def read(path: str | os.PathLike[str]) -> Saved:
    """`load`, with what is known of the network besides."""
    path = Path(path)
    if not path.exists() and str(path) in list_pretrained():
        path = pretrained_folder(str(path))
    if is_export(path):
        config, weights = read_export(path)
        try:
            return _build(path, dict(config["model"]), PictureFormat.of(config["pictures"]), weights)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a whole export: {error}") from error
    if path.is_dir():
        best, last = (path / "checkpoints" / f"{name}.ckpt" for name in ("best", "last"))
        path = best if best.is_file() or not last.is_file() else last
    checkpoint = read_checkpoint(path)
    try:
        node = dict(checkpoint["hyper_parameters"]["run"]["model"])
        pictures = PictureFormat.of(checkpoint["pictures"])
        weights = {
            name.removeprefix("network."): value
            for name, value in checkpoint["state_dict"].items()
            if name.startswith("network.")
        }
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} does not say what network it holds (no {error})") from error
    if (target := node.pop("_target_", None)) != "gsa.create_model":
        raise ValueError(
            f"{path} holds a network built by {target!r}; expected 'gsa.create_model': build it yourself and load "
            "its weights with gsa.saved.read_checkpoint"
        )
    return _build(path, node, pictures, weights)


def _build(path: Path, model: dict[str, Any], pictures: PictureFormat, weights: dict[str, Tensor]) -> Saved:
    sizes = {"in_channels": pictures.in_channels, "num_classes": pictures.num_classes}
    network = create_model(**{**model, **sizes})
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"the weights in {path} are not those of its {model.get('name')}: {error}") from error
    network.pictures = pictures
    return Saved(network.eval(), model, pictures)
