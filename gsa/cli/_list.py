"""gsa list"""

from argparse import Namespace
from typing import Any

from gsa._kept import kept

__all__ = ["run"]


def run(options: Namespace) -> int:
    """Every network, its group and its number of parameters."""
    for name, facts in kept("networks", _built).items():
        print(f"{name:24s} {facts['group']:4s} {facts['parameters']:>10,} parameters")
    return 0


def _built() -> dict[str, Any]:
    from gsa.models import create_model, list_models

    networks = {name: create_model(name) for name in list_models()}
    return {
        name: {"group": network.group.name, "parameters": sum(p.numel() for p in network.parameters())}
        for name, network in networks.items()
    }
