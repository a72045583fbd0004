"""Trained networks on disk: read from a run, or from a folder of weights and configuration; and written as such."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gsa.models import create_model

__all__ = ["Pictures", "Saved", "export", "load", "read"]


@dataclass(frozen=True)
class Pictures:
    """What a network was trained on.

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

    def normalise(self, pictures: Tensor) -> Tensor:
        """[..., C, H, W] in [0, 1] → what the network is given."""
        mean, std = (torch.tensor(values).view(-1, 1, 1).to(pictures) for values in (self.mean, self.std))
        return (pictures - mean) / std


@dataclass(frozen=True)
class Saved:
    """A trained network, the keywords of `create_model` it was built with, and the pictures it knows."""

    network: nn.Module
    model: dict[str, Any]
    pictures: Pictures


def load(path: str | os.PathLike) -> nn.Module:
    """A trained network in eval mode; it takes pictures as `read(path).pictures.normalise` makes them.

    Args:
        path: folder of a run (its best weights), a checkpoint, or a folder written by `export`.

    Raises:
        FileNotFoundError: nothing of the kind is there.
        ValueError: a damaged file, one that could run code, or a network that `gsa.create_model` does not build.
    """
    return read(path).network


def read(path: str | os.PathLike) -> Saved:
    """`load`, with what is known of the network besides."""
    path = Path(path)
    if (path / "model.safetensors").is_file():
        return _read_export(path)
    if path.is_dir():
        best, last = (path / "checkpoints" / f"{name}.ckpt" for name in ("best", "last"))
        path = best if best.is_file() or not last.is_file() else last
    from gsa.training import read_checkpoint  # brings Lightning

    checkpoint = read_checkpoint(path)
    try:
        node = dict(checkpoint["hyper_parameters"]["run"]["model"])
        pictures = _pictures(checkpoint["pictures"])
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
            "its weights with gsa.training.read_checkpoint"
        )
    return _build(path, node, pictures, weights)


def export(saved: Saved, folder: str | os.PathLike, program: bool = False) -> list[Path]:
    """Write a network as model.safetensors and config.json, which `load` reads and nothing in them can run.

    Args:
        saved: from `read`.
        folder: made if it is not there.
        program: also model.pt2, the whole network as a `torch.export` program for any batch: normalised pictures
            [B, C, image_size, image_size] → logits.

    Returns:
        The files.
    """
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "model.safetensors", folder / "config.json"]
    save_file({name: value.contiguous() for name, value in saved.network.state_dict().items()}, files[0])
    config = {"model": saved.model, "pictures": asdict(saved.pictures)}
    files[1].write_text(json.dumps(config | {"sha256": _digest(config, files[0])}, indent=2) + "\n")
    if program:
        pictures = saved.pictures
        example = torch.rand(2, pictures.in_channels, pictures.image_size, pictures.image_size)
        exported = torch.export.export(saved.network, (example,), dynamic_shapes=({0: torch.export.Dim("batch")},))
        files.append(folder / "model.pt2")
        torch.export.save(exported, files[-1])
    return files


def _read_export(folder: Path) -> Saved:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        config = json.loads((folder / "config.json").read_text())
        digest = _digest({key: config[key] for key in ("model", "pictures")}, folder / "model.safetensors")
        if digest != config["sha256"]:
            raise ValueError(
                f"{folder} is not a whole export: model.safetensors or config.json has changed; expected the digest "
                f"{config['sha256']}, but got {digest}"
            )
        weights = load_file(folder / "model.safetensors")
        return _build(folder, dict(config["model"]), _pictures(config["pictures"]), weights)
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, SafetensorError) as error:
        raise ValueError(f"{folder} is not a whole export: {error}") from error


def _digest(config: dict[str, Any], weights: Path) -> str:
    """SHA-256 of the configuration, whatever its layout, and the weights' file."""
    text = json.dumps(config, sort_keys=True).encode()
    return hashlib.sha256(text + weights.read_bytes()).hexdigest()


def _pictures(values: Mapping[str, Any]) -> Pictures:
    return Pictures(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})


def _build(path: Path, model: dict[str, Any], pictures: Pictures, weights: dict[str, Tensor]) -> Saved:
    sizes = {"in_channels": pictures.in_channels, "num_classes": pictures.num_classes}
    network = create_model(**{**model, **sizes})
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"the weights in {path} are not those of its {model.get('name')}: {error}") from error
    return Saved(network.eval(), model, pictures)
