"""Weights that training begins with, in place of random ones."""

import copy
import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gsa.models import TorchvisionNet
from gsa.runner._build import Run
from gsa.saved import load

__all__ = ["start_from"]

_SHOWN = 3  # names of a message


def start_from(run: Run, path: str) -> None:
    """Give the network the weights of a trained one; a head for other classes stays as it is.

    Args:
        run: whose network has not been trained.
        path: of a run, an export or a checkpoint, or a name, as `gsa.load` takes it; of a `TorchvisionNet`, also of a
            file of torchvision's, such as resnet18-f37072fd.pth.

    Raises:
        FileNotFoundError: there is nothing.
        ValueError: weights of another network; a file that is damaged; a run that was trained on pictures which are
            to be tested here, as far as its parts.csv tells.
    """
    network = run.network
    _refuse_seen(run, path)
    if isinstance(network, TorchvisionNet) and Path(path).suffix in (".pth", ".pt"):
        network.load_torchvision(_torchvisions(path))
        return
    trained = load(path) if run.config.model.get("name") else load(path, copy.deepcopy(network))
    weights, own = trained.state_dict(), network.state_dict()
    for name in _of_head(network):
        if name in weights and name in own and weights[name].shape != own[name].shape:
            weights[name] = own[name]
    if others := _differing(weights, own):
        raise ValueError(
            f"start_from must be weights of this network, {type(network).__name__} of {len(own)} tensors, but those of "
            f"{path} differ in {len(others)}: {'; '.join(others[:_SHOWN])}"
        )
    network.load_state_dict(weights)


def _refuse_seen(run: Run, path: str) -> None:
    """What was trained on before says nothing in a test, nor in the choice of an epoch."""
    listed = next(
        (at / "parts.csv" for at in (Path(path), *Path(path).parents[:2]) if (at / "parts.csv").is_file()), None
    )
    if listed is None:
        return
    try:
        with open(listed, newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.DictReader(file) if row.get("part") == "train"]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"start_from: {listed}, which says what was trained on, is damaged: {error}") from error
    trained = {os.path.abspath(row.get("path") or "") for row in rows}
    for part in ("test", "val"):
        files = run.data.parts[part].files or ()
        if seen := sum(os.path.abspath(picture) in trained for picture, _ in files):
            raise ValueError(
                f"start_from must not have been trained on what is tested here, but {seen} of {len(files)} pictures "
                f"of the part {part} are among those for training in {listed}: divide them alike (data.fold, "
                "data.test_share, data.val_share, data.split_seed, …), or begin with weights of other pictures"
            )


def _torchvisions(path: str) -> Mapping[str, Tensor]:
    if not Path(path).is_file():
        raise FileNotFoundError(f"start_from: there is no file {path}")
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of torch, of many kinds
        raise ValueError(f"start_from: {path} is damaged, or holds more than tensors: {error}") from error
    if not isinstance(weights, Mapping) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise ValueError(f"start_from: {path} must hold names and tensors, as torchvision's files do")
    return weights


def _of_head(network: nn.Module) -> list[str]:
    """Names of its parameters and buffers in the state of the network."""
    head: Any = getattr(network, "get_classifier", lambda: None)()
    names = [name for name, module in network.named_modules() if module is head]
    return [key for key in network.state_dict() for name in names if key.startswith(f"{name}.")]


def _differing(there: Mapping[str, Tensor], here: Mapping[str, Tensor]) -> list[str]:
    """Names whose tensors have another shape, or that only one has."""

    def told(name: str, of: Mapping[str, Tensor]) -> str:
        return str(list(of[name].shape)) if name in of else "none"

    return [
        f"{name} ({told(name, there)} there, {told(name, here)} here)"
        for name in sorted(there.keys() | here.keys())
        if told(name, there) != told(name, here)
    ]
