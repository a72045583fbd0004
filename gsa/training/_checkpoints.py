"""Checkpoints that are written whole or not at all, and read without running any code in them."""

import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io import TorchCheckpointIO

__all__ = ["SafeCheckpointIO", "read_checkpoint"]


def read_checkpoint(path: str | os.PathLike, map_location: Any = "cpu") -> dict[str, Any]:
    """Tensors and plain values of a checkpoint; anything that would run code on loading is refused.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file that is not a whole checkpoint, or holds more than tensors and plain values.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no checkpoint at {path}")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Detected pickle protocol")  # not ours, and refused right below
            checkpoint = torch.load(path, map_location=map_location, weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} holds more than tensors and plain values and was not loaded, because that could run code: "
            f"{str(error).splitlines()[0]}"
        ) from error
    except (RuntimeError, EOFError, OSError, KeyError, ValueError) as error:
        raise ValueError(f"{path} is not a whole checkpoint: {error}") from error
    if not isinstance(checkpoint, dict) or "state_dict" not in checkpoint:
        raise ValueError(f"{path} is not a checkpoint of a run: it has no state_dict")
    return checkpoint


class SafeCheckpointIO(TorchCheckpointIO):
    """Writes beside the target and renames; reads with `read_checkpoint`, whatever is asked for."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path, storage_options: Any = None) -> None:
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        try:
            with part.open("wb") as stream:
                torch.save(checkpoint, stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)

    def load_checkpoint(self, path, map_location: Any = "cpu", weights_only: bool | None = True) -> dict[str, Any]:
        return read_checkpoint(path, map_location)
