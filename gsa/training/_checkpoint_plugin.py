"""Lightning's checkpoints are written and read as ours."""

import os
from typing import Any

from lightning.fabric.plugins.io import TorchCheckpointIO

from gsa.saved import read_checkpoint, write_checkpoint

__all__ = ["SafeCheckpointIO"]


class SafeCheckpointIO(TorchCheckpointIO):
    """`write_checkpoint` and `read_checkpoint`, whatever is asked for."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | os.PathLike[str], storage_options: Any = None
    ) -> None:
        write_checkpoint(checkpoint, path)

    def load_checkpoint(
        self, path: str | os.PathLike[str], map_location: Any = "cpu", weights_only: bool | None = True
    ) -> dict[str, Any]:
        return read_checkpoint(path, map_location)
