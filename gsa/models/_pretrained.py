"""Trained weights that come with the package."""

from pathlib import Path
from typing import Any

from gsa.models._keywords import plain
from gsa.models._network import Network
from gsa.models._picture_format import PictureFormat
from gsa.models._presets import PRESETS
from gsa.models._weight_files import is_export, read_export

__all__ = ["list_pretrained", "load_pretrained", "pretrained_folder"]

_FOLDER = Path(__file__).parent / "weights"


def list_pretrained() -> list[str]:
    """Names of the networks whose trained weights come with the package."""
    return sorted(folder.name for folder in _FOLDER.glob("*") if is_export(folder))


def pretrained_folder(name: str) -> Path:
    """Where the trained weights of a network lie, as an export.

    Raises:
        ValueError: there are none of this name.
    """
    if name not in list_pretrained():
        raise ValueError(f"there are no trained weights of {name!r}; there are those of {list_pretrained()}")
    return _FOLDER / name


def load_pretrained(network: Network, name: str, keywords: dict[str, Any]) -> None:
    """Give a network its trained weights; a head for other classes than it was trained on stays as it is.

    Args:
        network: as `gsa.create_model` built it.
        name, keywords: that it was built with.

    Raises:
        ValueError: there are none of this name; files that have changed; keywords that make another network.
    """
    config, weights = read_export(pretrained_folder(name))
    sizes = {key: config["pictures"][key] for key in ("in_channels", "num_classes")}
    trained = PRESETS[name].as_written(config["model"]) | sizes
    free = {"num_classes", "on_inexact", *network.training_only}
    differing = [
        f"{key}={value!r} (trained: {trained[key]!r})"
        for key, value in keywords.items()
        if key not in free and plain(value) != plain(trained[key])
    ]
    if differing:
        raise ValueError(f"the trained weights of {name} are those of another network than {', '.join(differing)}")
    if network.num_classes != trained["num_classes"]:
        kept = {key: value for key, value in network.state_dict().items() if key.startswith("head.")}
        weights = {key: value for key, value in weights.items() if not key.startswith("head.")} | kept
    network.load_state_dict(weights)
    network.pictures = PictureFormat.of(config["pictures"]).with_classes(network.num_classes)
