"""Untrained networks of any kind, made when the served page is asked for one."""

from collections.abc import Mapping
from typing import Any

import torch

from gsa.encodings import KINDS
from gsa.models import create_model
from gsa.saved import Saved, read

__all__ = ["CHOICES", "made"]

# What can be chosen, and what it is called. The slowest combination is made in a second, and measured by layer in five.
CHOICES: dict[str, dict[str, str]] = {
    "group": {
        "Z2": "Z2, shifts alone",
        "Z2M": "Z2M, mirrors",
        "R4": "R4, turns by 90°",
        "R4M": "R4M, and mirrors",
        "R8": "R8, turns by 45°",
        "R8M": "R8M, and mirrors",
        "R16": "R16, turns by 22.5°",
    },
    "encoding": {name: name if "poses" in kind.keeps else f"{name}, breaks it" for name, kind in KINDS.items()},
    "form": {"regular": "regular", "summed": "summed"},
    "neighbourhood": {"3": "3×3", "5": "5×5", "7": "7×7", "all": "the whole map"},
    "window": {"square": "square", "disk": "disk"},
}


def made(choice: Mapping[str, str]) -> Saved:
    """A network of `digits_r4_sa`'s plan with a choice of its kind, for the same pictures as `digits_gsa`.

    It has 32 channels, two blocks and four heads, sees 12×12 pixels and has at most 16 poses, which bounds what a
    question may cost. Its weights are random, always the same, and each sample is normalised, so that its logits are
    of ordinary size.

    Args:
        choice: a key of each of `CHOICES`.

    Raises:
        ValueError: what is no choice, or a kind that cannot be combined, as the layers say it.
    """
    for name, offered in CHOICES.items():
        if choice.get(name) not in offered:
            raise ValueError(f"{name} must be one of {', '.join(offered)}, but got {str(choice.get(name))[:40]!a}")
    size = choice["neighbourhood"]
    kind: dict[str, Any] = {
        "group": choice["group"],
        "encoding": choice["encoding"],
        "form": choice["form"],
        "neighbourhood": None if size == "all" else int(size),
        "window": choice["window"],
        "norm": "sample",
    }
    with torch.random.fork_rng([]):
        known = read("digits_gsa").pictures
        torch.manual_seed(0)
        network = create_model("digits_r4_sa", **kind).eval()
    network.pictures = known
    return Saved(network, {"name": "digits_r4_sa", **kind}, known)
