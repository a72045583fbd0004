"""A trained network: of a run, of one of its checkpoints, or of an export."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gsa.models import Network, create_model
from gsa.saved._checkpoint import read_checkpoint
from gsa.saved._export_files import is_export, read_export

__all__ = ["PictureFormat", "Saved", "load", "read"]


@dataclass(frozen=True)
class PictureFormat:
    """The pictures a network was trained on, and is to be shown.

    Attributes:
        data: name of the data set.
        in_channels, image_size: of a picture.
        num_classes: of the labels.
        mean, std: by channel, that pictures in [0, 1] are normalised with.
        classes: names of the labels; their numbers where they have no names.
    """

    data: str
    in_channels: int
    image_size: int
    num_classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "PictureFormat":
        """From plain values, as files hold them."""
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**plain)

    def normalise(self, pictures: Tensor) -> Tensor:
        """[..., C, H, W] in [0, 1] → what the network is given."""
        mean, std = (torch.tensor(values).view(-1, 1, 1).to(pictures) for values in (self.mean, self.std))
        return (pictures - mean) / std


@dataclass(frozen=True)
class Saved:
    """A trained network, the keywords of `create_model` it was built with, and the pictures it knows."""

    network: Network
    model: dict[str, Any]
    pictures: PictureFormat


def load(path: str | os.PathLike[str]) -> Network:
    """A trained network in eval mode; it takes pictures as `read(path).pictures.normalise` makes them.

    Args:
        path: folder of a run (its best weights), a checkpoint, or a folder written by `export`.

    Raises:
        FileNotFoundError: nothing of the kind is there.
        ValueError: a damaged file, one that could run code, or a network that `gsa.create_model` does not build.
    """
    return read(path).network


def read(path: str | os.PathLike[str]) -> Saved:
    """`load`, with what is known of the network besides."""
    path = Path(path)
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
    return Saved(network.eval(), model, pictures)
