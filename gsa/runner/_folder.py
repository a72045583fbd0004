"""The folder of a run."""

import os
from pathlib import Path

from gsa._whole_files import write_whole
from gsa.runner._schema import ConfigError

__all__ = ["refuse_unwritable", "write_config"]


def write_config(resolved: str, folder: Path) -> None:
    """config.yaml, the first thing written; the report of an earlier run in the folder goes."""
    (folder / "report.json").unlink(missing_ok=True)
    write_whole(folder / "config.yaml", resolved.encode())


def refuse_unwritable(folder: Path) -> None:
    """Look whether a run can write into its folder, before anything is written.

    Raises:
        ConfigError: it or what stands in its place is not a folder, or is read-only.
    """
    for place in (folder.absolute(), folder.absolute() / "checkpoints"):
        standing = next(part for part in (place, *place.parents) if part.exists())
        if not (standing.is_dir() and os.access(standing, os.W_OK | os.X_OK)):
            raise ConfigError(f"output_dir must be a folder that can be written, but {standing} is not")
