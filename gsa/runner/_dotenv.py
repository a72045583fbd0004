"""What the environment, and a file .env, say of this machine."""

import os
import sys
from pathlib import Path

from dotenv import dotenv_values

from gsa.files import printable

__all__ = ["read_variables", "take_dotenv"]

_TAKEN = ("GSA_", "WANDB_", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")  # they begin so
_AWAY = ("WANDB_BASE_URL",)  # where wandb sends its key


def take_dotenv(file: Path) -> None:
    """Set the variables of gsa, wandb, threads and devices that stand in a file .env and are not set yet, or empty.

    Others, which may have Python run what it names (PYTHONPATH), are passed over, with a line on the standard error:
    the file is that of whatever folder the command is given in.
    """
    if not file.is_file():  # a folder, or a pipe that something else fills, which would be waited for
        return
    found = dotenv_values(file)
    taken = {name for name in found if name.startswith(_TAKEN) and name not in _AWAY}
    for name in taken:
        os.environ[name] = os.environ.get(name) or found[name] or ""
    if left := sorted(found.keys() - taken - os.environ.keys()):
        print(
            f"passed over in .env: {printable(', '.join(left))} (GSA_… and WANDB_… are taken from it, but for "
            "WANDB_BASE_URL; export others)",
            file=sys.stderr,
        )


def read_variables() -> None:
    """Leave out variables of gsa and wandb that are empty, as in GSA_OUTPUTS=; ~ of folders is the home of the user."""
    for name in [name for name, value in os.environ.items() if name.startswith(("GSA_", "WANDB_")) and not value]:
        del os.environ[name]
    for name in ("GSA_DATA", "GSA_OUTPUTS"):
        if name in os.environ:
            os.environ[name] = os.path.expanduser(os.environ[name])
