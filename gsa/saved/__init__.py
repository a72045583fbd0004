"""What a run leaves on disk: checkpoints, trained networks, exports. Needs torch only; nothing in a file can run."""

from gsa.models import PictureFormat
from gsa.saved._building import build
from gsa.saved._checkpoint import newest_checkpoint, read_checkpoint, write_checkpoint
from gsa.saved._export import export
from gsa.saved._finite import first_not_finite
from gsa.saved._network import Saved, load, read

__all__ = [
    "PictureFormat",
    "Saved",
    "build",
    "export",
    "first_not_finite",
    "load",
    "newest_checkpoint",
    "read",
    "read_checkpoint",
    "write_checkpoint",
]
