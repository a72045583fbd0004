"""A trained network: of a run, of one of its checkpoints, or of an export."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, overload

from torch import nn

from gsa._nearest import nearest
from gsa._remembered import with_groups
from gsa.models import Network, PictureFormat, is_export, list_models, list_pretrained, pretrained_folder, read_export
from gsa.saved._building import build, filled
from gsa.saved._checkpoint import read_checkpoint
from gsa.saved._run_folder import checkpoint_of

__all__ = ["Saved", "load", "read"]

Own: TypeAlias = nn.Module | Callable[..., nn.Module]


@dataclass(frozen=True)
class Saved:
    """A trained network, the keywords of `create_model`, or of what else builds it, and the pictures it knows."""

    network: Any
    model: dict[str, Any]
    pictures: PictureFormat


@overload
def load(path: str | os.PathLike[str]) -> Network: ...
@overload
def load(path: str | os.PathLike[str], network: Own) -> nn.Module: ...
def load(path: str | os.PathLike[str], network: Own | None = None) -> nn.Module:
    """A trained network; it takes pictures as its `pictures.normalise` makes them.

    It is in eval mode, in which Lightning would leave it: call `train()` before it is trained further.

    Args:
        path: folder of a run (its best weights), a checkpoint, or a folder written by `export`; or the name of a
            network whose trained weights come with the package.
        network: of a run whose network is your own, which no checkpoint holds the code of: one that you have made, or
            what makes it, given in_channels, num_classes and the keywords of the run, which are those in the file.

    Raises:
        FileNotFoundError: nothing of the kind is there.
        ValueError: a damaged file, one that could run code, weights of another network, or, with no `network`, one
            that `gsa.create_model` does not build.
    """
    loaded: nn.Module = read(path, network).network
    return loaded


def read(path: str | os.PathLike[str], network: Own | None = None) -> Saved:
    """`load`, with what is known of the network besides.

    Raises:
        FileNotFoundError, ValueError: as of `load`.
    """
    path = Path(path)
    if not path.exists() and len(path.parts) == 1 and not path.suffix:
        path = _of_name(str(path))
    trained_since = (path / "checkpoints" / "best.ckpt").is_file()  # by a run that was exported into its own folder
    if is_export(path) and not trained_since:
        config, weights = read_export(path)
        model, pictures, made_by = config["model"], config["pictures"], config["version"]
    else:
        path = checkpoint_of(path)
        model, pictures, weights, made_by = _of_checkpoint(path, network is not None)
    try:
        known = PictureFormat.of(pictures)
    except ValueError as error:
        raise ValueError(f"{path} does not say what pictures its network knows: {error}") from error
    keywords = {**model, "in_channels": known.in_channels, "num_classes": known.num_classes}
    built: Any = (
        filled(path, network, keywords, weights) if network is not None else build(path, keywords, weights, made_by)
    )
    if isinstance(built, Network) or not hasattr(built, "pictures"):  # it may have something of its own by that name
        built.pictures = known
    return Saved(built, model, known)


def _of_name(name: str) -> Path:
    """Where the weights of a network lie that comes trained."""
    if name in list_pretrained():
        return pretrained_folder(name)
    if name in list_models():
        trained = ", ".join(list_pretrained())
        raise FileNotFoundError(f"{name} does not come trained: expected a run, a checkpoint, an export, or {trained}")
    raise FileNotFoundError(
        f"there is neither a file nor a network called {name!r}{nearest(name, list_models())}: expected a run, a "
        "checkpoint, an export, or a name of gsa list; gsa check and gsa explore --model also take what Python "
        "imports, such as torchvision.models:resnet18"
    )


def _of_checkpoint(path: Path, is_own: bool) -> tuple[dict[str, Any], Any, dict[str, Any], Any]:
    """Keywords, pictures, weights and the version that wrote them."""
    checkpoint = read_checkpoint(path)
    try:
        node, pictures, state = (
            checkpoint["hyper_parameters"]["run"]["model"],
            checkpoint["pictures"],
            checkpoint["state_dict"],
        )
        groups = checkpoint.get("groups", {})  # which those of earlier versions lack
        names = (*node, *state, *groups, *groups.values())
        if not (isinstance(node, dict) and all(isinstance(name, str) for name in names)):
            raise TypeError("names that are texts")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} does not say what network it holds and what pictures it knows (no {error}), as a run does, and a "
            "Classifier with config={'run': {'model': …}} on data of gsa or of gsa.data.completed"
        ) from error
    node = dict(node)
    target = node.pop("_target_", None)
    if not isinstance(target, str):
        raise ValueError(f"{path} does not say what network it holds (no _target_)")
    if target != "gsa.create_model" and not is_own:
        raise ValueError(
            f"{path} holds a network built by {target[:200]!a}, and not its code; expected 'gsa.create_model', or, if "
            "it is your own, what builds it: gsa.load(path, network=…), gsa predict --network module:attribute, "
            "gsa check module:attribute --checkpoint …"
        )
    weights = {name.removeprefix("network."): state[name] for name in state if name.startswith("network.")}
    return node, pictures, with_groups(weights, groups), checkpoint.get("gsa_version")
