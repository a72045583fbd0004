"""gsa check"""

import json
import math
import os
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gsa.groups import Group, group
from gsa.models import create_model, list_models, list_pretrained, preset
from gsa.saved import read
from gsa.symmetry import LayerReport

__all__ = ["run", "subject"]

_SIDES = {"digits": 12, "rotmnist": 28, "cifar10": 32, "pcam": 96, "imagefolder": 64}  # of a network's own data
_PICTURES = 3


def run(options: Namespace) -> int:
    """The equivariance error of a network and of its layers under each element of a group, on random pictures.

    Exit code 1 where an exact element of the group that is claimed is broken, or an error is not a number.
    """
    what = str(options.checkpoint or options.network or "")
    if not what or (options.checkpoint and options.network):
        raise ValueError("say what to check once: a name, a run, or module:attribute; gsa check --help shows examples")
    network, images, own = subject(what, options.input)
    claimed = group(options.group) if options.group else own if own is not None and own.order > 1 else None
    report = LayerReport.of(network.double(), images.double(), claimed or group("R4M"), options.tolerance)
    errors = report.errors[list(report.errors)[-1]]
    broken = [g for g, error in errors.items() if not math.isfinite(error) or (claimed and g in report.broken)]
    if options.json:
        print(json.dumps(report.as_dict() | {"claimed": claimed is not None}, indent=1))
    else:
        print(_told(what, report, claimed, broken, options.depth))
    return 1 if broken else 0


def subject(what: str, size: str | None) -> tuple[nn.Module, Tensor, Group | None]:
    """The network, random pictures for it, and its own group."""
    generator = torch.Generator().manual_seed(0)
    if ":" in what and not Path(what).exists():
        if size is None:
            raise ValueError(f"the size of the pictures of {what} must be given, such as --input 3,64,64")
        images = torch.rand(_PICTURES, *_numbers(size), generator=generator)
        return _imported(what), images, None
    if what in list_models() and what not in list_pretrained() and not Path(what).exists():
        torch.manual_seed(0)
        known = preset(what)
        side = _SIDES[known.data]
        numbers = _numbers(size) if size else [known.keywords["in_channels"], side, side]
        network = create_model(what, in_channels=numbers[0]).eval()
        return network, torch.rand(_PICTURES, *numbers, generator=generator), network.group
    saved = read(what)
    pictures = saved.pictures
    numbers = _numbers(size) if size else [pictures.in_channels, pictures.image_size, pictures.image_size]
    images = pictures.normalise(torch.rand(_PICTURES, *numbers, generator=generator))
    return saved.network, images, saved.network.group


def _numbers(size: str) -> list[int]:
    parts = size.split(",")
    if len(parts) != 3 or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"--input must be channels, height and width, such as 3,64,64, but got {size!r}")
    return [int(part) for part in parts]


def _imported(what: str) -> nn.Module:
    """module:attribute, which is a network, or makes one when it is called."""
    place, _, name = what.partition(":")
    sys.path.append(os.getcwd())
    found: Any = import_module(place)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{place} has no {name!r}")
        found = getattr(found, part)
    torch.manual_seed(0)
    network = found if isinstance(found, nn.Module) else found() if callable(found) else found
    if not isinstance(network, nn.Module):
        raise ValueError(f"{what} must be an nn.Module, or make one when it is called, but is {type(network).__name__}")
    return network.eval()


def _told(what: str, report: LayerReport, claimed: Group | None, broken: list[int], depth: int) -> str:
    """A line for each element, and a table of the layers."""
    measured, exact = report.group, report.group.grid_elements
    whole = list(report.errors)[-1]
    lines = [f"{what} ({claimed.name if claimed else 'no symmetry claimed'}): relative change of what it returns"]
    for g, error in report.errors[whole].items():
        note = "not claimed" if claimed is None and g else "exact" if g in exact else "sampled"
        lines.append(f"    {measured.describe(g):20s} {error:.1e}  {'BROKEN' if g in broken else note}")
    lines += ["", report.table(depth)]
    return "\n".join(lines)
