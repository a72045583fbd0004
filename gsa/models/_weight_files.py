"""Weights on disk: model.safetensors, and config.json with a digest over both."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from gsa._version import VERSION
from gsa.files import one_line, read_signed, signed, write_whole

__all__ = ["is_export", "read_export", "read_weights", "write_export"]

_WEIGHTS, _CONFIG = "model.safetensors", "config.json"


def is_export(folder: Path) -> bool:
    """Whether a folder looks like one."""
    return (folder / _WEIGHTS).is_file()


def write_export(folder: Path, config: dict[str, Any], weights: dict[str, Tensor]) -> list[Path]:
    """Weights, and the configuration beside them; the folder is made if it is not there."""
    from safetensors.torch import save

    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / _WEIGHTS, folder / _CONFIG]
    content = save({name: value.contiguous() for name, value in weights.items()}, {"gsa": VERSION})
    for file, written in zip(files, (content, signed(config, content)), strict=True):
        write_whole(file, written)
    return files


def read_export(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Configuration ("model", "pictures", and the "version" that wrote it, None if it is not stated) and weights.

    Raises:
        FileNotFoundError: there is none.
        ValueError: files that are damaged or not those that were written.
    """
    config, weights, has_digest = read_weights(folder)
    for key in ("model", "pictures"):
        if not isinstance(config.get(key), dict):
            meant = ": gsa.hub.HubNetwork.from_pretrained reads what it saved" if "keywords" in config else ""
            raise ValueError(f"{folder} is not a whole export: {_CONFIG} does not say what its {key} are{meant}")
    if not has_digest:
        raise ValueError(f"{folder} is not a whole export: there is no digest in {_CONFIG}")
    return config, weights


def read_weights(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor], bool]:
    """What stands in both files, and whether there was a digest to compare them with.

    Raises:
        FileNotFoundError: there is none.
        ValueError: files that are damaged or not those that were written.
    """
    from safetensors.torch import load

    content = (folder / _WEIGHTS).read_bytes()
    try:
        config, has_digest = read_signed(folder / _CONFIG, content)
        weights = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    except OSError:
        raise
    except Exception as error:  # safetensors has several kinds, and there are those of torch
        raise ValueError(f"{folder} is not a whole export: {one_line(error)}") from error
    stated = header.get("__metadata__", {}).get("gsa") or config.get("version")
    return config | {"version": stated}, weights, has_digest
