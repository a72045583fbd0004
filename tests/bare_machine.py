"""The suite as on a machine with a GPU that has torch, triton, lightning and pytest alone.

    python -m tests.bare_machine                        # every argument is pytest's
    python -m tests.bare_machine --collect-only

Other packages cannot be imported, and torch says that it has CUDA, where it has none, to all but itself and lightning:
what takes a GPU for granted fails. What a test starts as a process of its own sees the whole machine.
"""

import os
import sys
from importlib.machinery import PathFinder

import pytest
import torch

from tests.conftest import OPTIONAL

__all__ = ["hide"]


class _Others:
    """Finds what may be imported."""

    def find_distributions(self, context):
        return PathFinder.find_distributions(context)

    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in {*OPTIONAL, "xdist"} else PathFinder.find_spec(name, path, target)


def hide():
    """From here on, nothing optional can be imported."""
    sys.meta_path[sys.meta_path.index(PathFinder)] = _Others()


def seems_available():
    """In the place of torch.cuda.is_available."""
    return sys._getframe(1).f_globals["__name__"].partition(".")[0] not in ("torch", "lightning", "triton")


if __name__ == "__main__":
    hide()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they are found, though hidden
    torch.cuda.is_available = seems_available
    sys.modules.pop("tests.conftest")  # which pytest imports again, to find out what is missing
    sys.exit(pytest.main(sys.argv[1:]))
