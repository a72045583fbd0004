"""Weights on disk: model.safetensors, and config.json with a digest over both."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from torch import Tensor

__all__ = ["is_export", "read_export", "write_export"]

_WEIGHTS, _CONFIG = "model.safetensors", "config.json"


def is_export(folder: Path) -> bool:
    """Whether a folder looks like one."""
    return (folder / _WEIGHTS).is_file()


def write_export(folder: Path, config: dict[str, Any], weights: dict[str, Tensor]) -> list[Path]:
    """Weights, and the configuration beside them; the folder is made if it is not there."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / _WEIGHTS, folder / _CONFIG]
    save_file({name: value.contiguous() for name, value in weights.items()}, files[0])
    files[0].chmod(0o666 & ~_umask())  # as any other file; safetensors keeps them to their owner
    files[1].write_text(json.dumps(config | {"sha256": _digest(config, files[0])}, indent=2) + "\n")
    return files


def read_export(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Configuration ("model", "pictures") and weights.

    Raises:
        ValueError: files that are damaged or not those that were written.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        config = json.loads((folder / _CONFIG).read_text())
        written = {key: config[key] for key in ("model", "pictures")}
        digest = _digest(written, folder / _WEIGHTS)
        if digest != config["sha256"]:
            raise ValueError(
                f"{folder} is not a whole export: {_WEIGHTS} or {_CONFIG} has changed; expected the digest "
                f"{config['sha256']}, but got {digest}"
            )
        return written, load_file(folder / _WEIGHTS)
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, SafetensorError) as error:
        raise ValueError(f"{folder} is not a whole export: {error}") from error


def _digest(config: dict[str, Any], weights: Path) -> str:
    """SHA-256 of the configuration, whatever its layout, and the weights' file."""
    text = json.dumps(config, sort_keys=True).encode()
    return hashlib.sha256(text + weights.read_bytes()).hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
