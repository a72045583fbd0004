"""gsa list"""

import sys
from argparse import Namespace
from importlib.util import find_spec
from typing import Any

from gsa._kept import kept

__all__ = ["run"]


def run(options: Namespace) -> int:
    """Every network, its group and its number of parameters."""
    networks = kept("networks", _built, "gsa.models") if find_spec("torchvision") else _built()
    for name, facts in networks.items():
        print(f"{name:24s} {facts['group']:4s} {facts['parameters']:>10,} parameters")
    return 0


def _built() -> dict[str, Any]:
    """Networks that need what is not installed are left out, and say so."""
    from gsa.models import create_model, list_models

    found = {}
    for name in list_models():
        try:
            network = create_model(name)
        except ModuleNotFoundError as error:
            print(f"{name}: {error}", file=sys.stderr)
        else:
            parameters = sum(parameter.numel() for parameter in network.parameters())
            found[name] = {"group": network.group.name, "parameters": parameters}
    return found
