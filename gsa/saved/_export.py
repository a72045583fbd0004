"""A trained network written for others: weights and configuration, and perhaps a program."""

import os
from dataclasses import asdict
from pathlib import Path

import torch

from gsa.models import write_export
from gsa.saved._network import Saved

__all__ = ["export"]


def export(saved: Saved, folder: str | os.PathLike[str], program: bool = False) -> list[Path]:
    """Write a network as model.safetensors and config.json, which `load` reads and nothing in them can run.

    Args:
        saved: from `read`.
        folder: made if it is not there.
        program: also model.pt2, the whole network as a `torch.export` program for any batch: normalised pictures
            [B, C, image_size, image_size] → logits.

    Returns:
        The files.
    """
    folder = Path(folder)
    pictures = saved.pictures
    files = write_export(folder, {"model": saved.model, "pictures": asdict(pictures)}, saved.network.state_dict())
    (folder / "model.pt2").unlink(missing_ok=True)  # of another network
    if program:
        example = torch.rand(2, pictures.in_channels, pictures.image_size, pictures.image_size)
        exported = torch.export.export(saved.network, (example,), dynamic_shapes=({0: torch.export.Dim("batch")},))
        files.append(folder / "model.pt2")
        torch.export.save(exported, files[-1])
    return files
